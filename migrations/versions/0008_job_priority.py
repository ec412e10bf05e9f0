"""Give jobs a priority, and let only one job of a model run at a time, unless it is parallel."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_RUNS_ALONE = sa.text("state = 'running' AND NOT parallel")


def upgrade() -> None:
    # Not in batch mode, which on SQLite drops the table, and with it every version that refers to it.
    op.add_column("training_job", sa.Column("priority", sa.Integer(), server_default="0", nullable=False))
    op.add_column(
        "training_job", sa.Column("parallel", sa.Boolean(), server_default=sa.false(), nullable=False)
    )
    # Several of one model may have run when the service was stopped; they are taken over as they are.
    op.execute("UPDATE training_job SET parallel = true WHERE state = 'running'")
    op.create_index(
        "ix_training_job_one_of_a_model",
        "training_job",
        ["workspace", "model_name"],
        unique=True,
        sqlite_where=_RUNS_ALONE,
        postgresql_where=_RUNS_ALONE,
    )


def downgrade() -> None:
    op.drop_index("ix_training_job_one_of_a_model", "training_job")
    op.drop_column("training_job", "parallel")
    op.drop_column("training_job", "priority")
