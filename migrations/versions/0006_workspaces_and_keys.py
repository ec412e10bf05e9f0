"""Give every dataset, job and model to a workspace, and keep API keys; what is there belongs to "default"."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_UNIQUE = {"dataset": "name", "model": "name", "training_job": "idempotency_key"}
"""The column of each table that is unique within a workspace."""


def upgrade() -> None:
    for table, column in _UNIQUE.items():
        with op.batch_alter_table(table) as batch:
            batch.add_column(_workspace())
            batch.drop_constraint(f"uq_{table}_{column}", type_="unique")
            batch.create_unique_constraint(f"uq_{table}_workspace_{column}", ["workspace", column])
    op.create_table(
        "api_key",
        sa.Column("id", sa.String(40), nullable=False),
        _workspace(),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("scopes", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("requests_per_minute", sa.Integer(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_api_key"),
    )


def downgrade() -> None:
    op.drop_table("api_key")
    for table, column in _UNIQUE.items():
        with op.batch_alter_table(table) as batch:
            batch.drop_constraint(f"uq_{table}_workspace_{column}", type_="unique")
            batch.create_unique_constraint(f"uq_{table}_{column}", [column])
            batch.drop_column("workspace")


def _workspace() -> sa.Column[str]:
    return sa.Column("workspace", sa.String(100), server_default="default", nullable=False)
