"""Keep the last number that a model's versions were given, so that none is given twice."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Not in batch mode, which on SQLite drops the table, and with it every version that refers to it.
    op.add_column("model", sa.Column("last_number", sa.Integer(), server_default="0", nullable=False))
    op.execute(
        "UPDATE model SET last_number = COALESCE("
        "(SELECT MAX(number) FROM model_version WHERE model_version.model_id = model.id), 0)"
    )


def downgrade() -> None:
    op.drop_column("model", "last_number")
