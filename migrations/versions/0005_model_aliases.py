"""Name versions of a model by aliases, and keep with each version which code trained it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from app.persistence.base import UtcDateTime

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("model_version", sa.Column("code_version", sa.String(length=100)))
    op.create_table(
        "model_alias",
        sa.Column("model_id", sa.String(length=40), nullable=False),
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("model_version_id", sa.String(length=40), nullable=False),
        sa.Column("previous_version_id", sa.String(length=40)),
        sa.Column("changed_at", UtcDateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["model_id"], ["model.id"], name=op.f("fk_model_alias_model_id_model"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["model_version_id"],
            ["model_version.id"],
            name=op.f("fk_model_alias_model_version_id_model_version"),
        ),
        sa.ForeignKeyConstraint(
            ["previous_version_id"],
            ["model_version.id"],
            name=op.f("fk_model_alias_previous_version_id_model_version"),
            ondelete="SET NULL",
        ),
        sa.PrimaryKeyConstraint("model_id", "name", name=op.f("pk_model_alias")),
    )
    for column in ("model_version_id", "previous_version_id"):
        op.create_index(op.f(f"ix_model_alias_{column}"), "model_alias", [column])


def downgrade() -> None:
    op.drop_table("model_alias")
    op.drop_column("model_version", "code_version")
