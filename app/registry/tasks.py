"""What a version knows of its tasks: groups that share their weights, and one task in full."""

from __future__ import annotations

from sqlalchemy.orm import Session

from app.persistence.models import MatrixName
from app.registry import repository
from app.registry.groups import neighbours
from app.registry.matrix_store import load_matrix
from app.registry.schemas import Cluster, ClusterPage, Neighbour, ProductPage, TaskDetail, VersionRef
from app.registry.service import StoredModel, no_version, unknown_product

MOST_MEMBERS = 100
"""Tasks of a group that a page of groups names."""
MOST_NEIGHBOURS = 1000


def list_clusters(model: StoredModel, limit: int, cursor: int | None) -> ClusterPage:
    """Return one page of the groups of tasks with equal weights, the largest first."""
    first = 0 if cursor is None else cursor
    groups, ids = model.groups, model.unique_ids
    items = []
    for group in range(first, min(first + limit, len(groups.size))):
        members = groups.members(group)
        named = [ids[row] for row in members[:MOST_MEMBERS]]
        items.append(Cluster(cluster=group, n_tasks=len(members), unique_ids=named))
    n_tasks, n_fused = len(ids), int(groups.size.sum())
    return ClusterPage(
        model=VersionRef(name=model.name, version=model.version),
        n_tasks=n_tasks,
        n_clusters=len(groups.size),
        n_alone=n_tasks - n_fused,
        items=items,
        next_cursor=str(first + limit) if first + limit < len(groups.size) else None,
    )


def list_members(model: StoredModel, cluster: int, limit: int, cursor: int | None) -> ProductPage:
    """Return one page of the tasks of a group; none of a group that there is not."""
    first = 0 if cursor is None else cursor
    found: list[str] = []
    if cluster < len(model.groups.size):
        members = model.groups.members(cluster)[first : first + limit + 1]
        found = [model.unique_ids[row] for row in members]
    return ProductPage.of(found, limit, lambda _: str(first + limit))


def read_task(session: Session, model: StoredModel, unique_id: str) -> TaskDetail:
    """Return one task: its weights, its group, its neighbours and how much was known of it."""
    row = model.rows.get(unique_id, -1)
    if row < 0:
        raise unknown_product(model, unique_id)
    version = repository.find_version(session, model.name, model.version)
    if version is None:
        raise no_version(session, model.name, model.version)
    version_id, n_tasks = version.version.id, len(model.rows)
    samples = graph = None
    if repository.has_matrix(session, version_id, MatrixName.SAMPLES):
        samples = load_matrix(session, version_id, MatrixName.SAMPLES, n_tasks, 1)
    if repository.has_matrix(session, version_id, MatrixName.GRAPH):
        graph = neighbours(load_matrix(session, version_id, MatrixName.GRAPH, None, None), n_tasks, row)
    label = model.groups.label
    cluster = int(label[row])
    return TaskDetail(
        model=VersionRef(name=model.name, version=model.version),
        unique_id=unique_id,
        weights=dict(zip(model.feature_names, model.weights[row].tolist(), strict=True)),
        intercept=float(model.intercept[row]),
        n_samples=None if samples is None else int(samples[row, 0]),
        cluster=None if cluster < 0 else cluster,
        n_in_cluster=1 if cluster < 0 else int(model.groups.size[cluster]),
        n_neighbors=None if graph is None else len(graph),
        neighbors=None
        if graph is None
        else [
            Neighbour(
                unique_id=model.unique_ids[other],
                mutual=mutual,
                same_cluster=cluster >= 0 and label[other] == cluster,
            )
            for other, mutual in graph[:MOST_NEIGHBOURS]
        ],
    )
