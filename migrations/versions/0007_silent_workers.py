"""Count the runs whose worker fell silent apart from those that died."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Not in batch mode, which on SQLite drops the table, and with it every version that refers to it.
    op.add_column("training_job", sa.Column("times_silent", sa.Integer(), server_default="0", nullable=False))


def downgrade() -> None:
    op.drop_column("training_job", "times_silent")
