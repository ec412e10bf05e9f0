"""Note until when each worker is to be counted as alive."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "living_worker",
        sa.Column("name", sa.String(length=300), nullable=False),
        sa.Column("alive_until", sa.Float(precision=53), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_living_worker")),
    )


def downgrade() -> None:
    op.drop_table("living_worker")
