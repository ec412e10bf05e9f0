"""Schedules, and which job is of which time of which schedule."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from app.persistence.base import UtcDateTime

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "schedule",
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("cron", sa.String(100), nullable=False),
        sa.Column("time_zone", sa.String(100), nullable=False),
        sa.Column("request", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("next_run_at", UtcDateTime(), nullable=True),
        sa.Column("last_tick", UtcDateTime(), nullable=True),
        sa.Column("last_job_id", sa.String(40), nullable=True),
        sa.Column("last_error", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("workspace", sa.String(100), server_default="default", nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_schedule")),
        sa.UniqueConstraint("workspace", "name", name=op.f("uq_schedule_workspace_name")),
    )
    # Not in batch mode, which on SQLite drops the table, and with it every version that refers to it.
    op.add_column("training_job", sa.Column("schedule", sa.String(100), nullable=True))
    op.add_column("training_job", sa.Column("schedule_tick", UtcDateTime(), nullable=True))
    op.create_index(
        "ix_training_job_one_of_a_tick",
        "training_job",
        ["workspace", "schedule", "schedule_tick"],
        unique=True,
    )


def downgrade() -> None:
    op.drop_index("ix_training_job_one_of_a_tick", "training_job")
    op.drop_column("training_job", "schedule_tick")
    op.drop_column("training_job", "schedule")
    op.drop_table("schedule")
