"""Create the tables: datasets, training jobs, model versions and their matrices."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    _create_datasets()
    _create_training_jobs()
    _create_model_versions()
    _create_matrices()


def downgrade() -> None:
    for table in (
        "task_row",
        "matrix_chunk",
        "model_version",
        "training_job",
        "model",
        "dataset_segment",
        "dataset_version",
        "dataset",
    ):
        op.drop_table(table)


def _text(name: str, length: int, *, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.String(length), nullable=nullable)


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.Integer(), autoincrement=False, nullable=False)


def _json(name: str, *, nullable: bool = False) -> sa.Column[object]:
    return sa.Column(name, sa.JSON(none_as_null=True), nullable=nullable)


def _time(name: str, *, nullable: bool = False) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=nullable)


def _reference(
    table: str, column: str, target: str, ondelete: str | None = "CASCADE"
) -> sa.ForeignKeyConstraint:
    name = f"fk_{table}_{column}_{target}"
    return sa.ForeignKeyConstraint([column], [f"{target}.id"], name=name, ondelete=ondelete)


def _create_datasets() -> None:
    op.create_table(
        "dataset",
        _text("id", 40),
        _text("name", 200),
        _text("kind", 20),
        _json("definition"),
        _time("created_at"),
        sa.PrimaryKeyConstraint("id", name="pk_dataset"),
        sa.UniqueConstraint("name", name="uq_dataset_name"),
    )
    op.create_table(
        "dataset_version",
        _text("id", 40),
        _text("dataset_id", 40),
        _number("number"),
        _json("report"),
        _time("created_at"),
        _reference("dataset_version", "dataset_id", "dataset"),
        sa.PrimaryKeyConstraint("id", name="pk_dataset_version"),
        sa.UniqueConstraint("dataset_id", "number", name="uq_dataset_version_dataset_id_number"),
    )
    op.create_index("ix_dataset_version_dataset_id", "dataset_version", ["dataset_id"])
    op.create_table(
        "dataset_segment",
        _text("dataset_version_id", 40),
        _number("position"),
        _text("sha256", 64),
        _number("n_rows"),
        sa.Column("n_bytes", sa.BigInteger(), nullable=False),
        _reference("dataset_segment", "dataset_version_id", "dataset_version"),
        sa.PrimaryKeyConstraint("dataset_version_id", "position", name="pk_dataset_segment"),
    )
    op.create_index("ix_dataset_segment_sha256", "dataset_segment", ["sha256"])


def _create_training_jobs() -> None:
    op.create_table(
        "training_job",
        _text("id", 40),
        _text("dataset_version_id", 40),
        _text("model_name", 200),
        _json("request"),
        _text("idempotency_key", 200, nullable=True),
        _text("state", 20),
        _number("attempt"),
        _number("times_lost"),
        _text("worker", 200, nullable=True),
        sa.Column("lease_expires_at", sa.Float(53), nullable=True),
        sa.Column("cancel_requested", sa.Boolean(), nullable=False),
        _json("progress", nullable=True),
        _json("error", nullable=True),
        _text("model_version_id", 40, nullable=True),
        _time("created_at"),
        _time("started_at", nullable=True),
        _time("finished_at", nullable=True),
        _reference("training_job", "dataset_version_id", "dataset_version"),
        sa.PrimaryKeyConstraint("id", name="pk_training_job"),
        sa.UniqueConstraint("idempotency_key", name="uq_training_job_idempotency_key"),
    )
    op.create_index("ix_training_job_dataset_version_id", "training_job", ["dataset_version_id"])
    op.create_index("ix_training_job_queue", "training_job", ["state", "created_at"])


def _create_model_versions() -> None:
    op.create_table(
        "model",
        _text("id", 40),
        _text("name", 200),
        _time("created_at"),
        sa.PrimaryKeyConstraint("id", name="pk_model"),
        sa.UniqueConstraint("name", name="uq_model_name"),
    )
    op.create_table(
        "model_version",
        _text("id", 40),
        _text("model_id", 40),
        _number("number"),
        _text("training_job_id", 40),
        _text("dataset_version_id", 40),
        _json("feature_names"),
        _number("n_tasks"),
        _json("configuration"),
        _json("metrics"),
        _json("report"),
        _time("created_at"),
        _reference("model_version", "model_id", "model"),
        _reference("model_version", "training_job_id", "training_job", ondelete=None),
        _reference("model_version", "dataset_version_id", "dataset_version", ondelete=None),
        sa.PrimaryKeyConstraint("id", name="pk_model_version"),
        sa.UniqueConstraint("model_id", "number", name="uq_model_version_model_id_number"),
        sa.UniqueConstraint("training_job_id", name="uq_model_version_training_job_id"),
    )
    op.create_index("ix_model_version_model_id", "model_version", ["model_id"])
    op.create_index("ix_model_version_dataset_version_id", "model_version", ["dataset_version_id"])


def _create_matrices() -> None:
    op.create_table(
        "matrix_chunk",
        _text("model_version_id", 40),
        _text("matrix", 20),
        _number("first_row"),
        _number("n_rows"),
        _number("n_columns"),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        _text("sha256", 64),
        _reference("matrix_chunk", "model_version_id", "model_version"),
        sa.PrimaryKeyConstraint("model_version_id", "matrix", "first_row", name="pk_matrix_chunk"),
    )
    op.create_table(
        "task_row",
        _text("model_version_id", 40),
        _text("unique_id", 512),
        _number("row"),
        _reference("task_row", "model_version_id", "model_version"),
        sa.PrimaryKeyConstraint("model_version_id", "unique_id", name="pk_task_row"),
    )
