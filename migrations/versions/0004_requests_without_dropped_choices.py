"""Take out of stored training requests what can no longer be asked for.

That is ``start``, and ``loss_scaling`` by residuals, in whose place stands the spread. What a model was
fitted with is in the configuration of its version, and stays.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_JOBS = sa.table("training_job", sa.column("id", sa.String()), sa.column("request", sa.JSON()))


def upgrade() -> None:
    connection = op.get_bind()
    for job_id, request in connection.execute(sa.select(_JOBS.c.id, _JOBS.c.request)).all():
        kept = {name: value for name, value in request.items() if name != "start"}
        if kept.get("loss_scaling") == "residual":
            kept["loss_scaling"] = "spread"
        if kept != request:
            connection.execute(sa.update(_JOBS).where(_JOBS.c.id == job_id).values(request=kept))


def downgrade() -> None:
    pass
