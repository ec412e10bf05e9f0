"""Keep what is known of a dataset version's rows; of versions from before, it is found when it is needed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "dataset_coverage",
        sa.Column("dataset_version_id", sa.String(40), nullable=False),
        sa.Column("part", sa.String(20), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["dataset_version_id"],
            ["dataset_version.id"],
            name="fk_dataset_coverage_dataset_version_id_dataset_version",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("dataset_version_id", "part", name="pk_dataset_coverage"),
    )


def downgrade() -> None:
    op.drop_table("dataset_coverage")
