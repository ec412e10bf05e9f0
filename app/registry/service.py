"""Find, describe, load and delete models and their versions."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from app.http.errors import Conflict, NotFound
from app.http.parameters import cursor_after, name_before
from app.persistence.models import MatrixName, Model
from app.registry import repository
from app.registry.forecasters import nothing_known, restored
from app.registry.groups import Groups
from app.registry.id_files import MappedRows
from app.registry.matrix_files import MatrixFiles
from app.registry.matrix_store import CorruptModel, load_matrix, load_task_rows
from app.registry.publication import History, has_intercept
from app.registry.references import split_alias
from app.registry.repository import AliasRow, VersionRow
from app.registry.schemas import (
    DataUsed,
    ForecastMetrics,
    Metrics,
    ModelDetail,
    ModelPage,
    ModelSummary,
    ModelVersionDetail,
    ModelVersionPage,
    ProductPage,
    Report,
)
from ccmtl_core import CCMTLModel, DataError
from ccmtl_core.base.near_matches import NearMatches
from ccmtl_core.forecasting import (
    ForecastModel,
    Frequency,
    NewProducts,
    SeriesColumns,
    SeriesPanel,
    new_products,
)

MAX_ID_BYTES = 512


@dataclass(frozen=True)
class StoredModel:
    """A version ready to predict: ``weights`` (T, P), ``intercept`` (T,), the row of each ``unique_id``.

    ``column_names`` are the columns that stand beside the values of its dataset; ``newest_past`` (T, C) is
    what ``past`` features of a forecaster read; ``data`` is where the values come from that forecasts start
    from. ``added`` are values of products that it was not fitted to, with what stands
    beside them.
    """

    name: str
    version: int
    weights: NDArray[np.float64]
    intercept: NDArray[np.float64]
    rows: Mapping[str, int]
    feature_names: tuple[str, ...]
    history: History | None = None
    frequency: Frequency | None = None
    forecaster: ForecastModel | None = None
    column_names: tuple[str, ...] = ()
    newest_past: NDArray[np.float64] | None = None
    data: DataUsed | None = None
    added: SeriesPanel | None = None
    added_attributes: pl.DataFrame | None = None
    added_columns: SeriesColumns | None = None

    @property
    def horizon(self) -> int:
        """Periods ahead that it forecasts unless others are asked for."""
        return 1 if self.forecaster is None else self.forecaster.horizon

    @cached_property
    def n_bytes(self) -> int:
        """Memory that it takes."""
        n_bytes = self.weights.nbytes + self.intercept.nbytes
        if self.history is not None:
            n_bytes += self.history.lags.nbytes + self.history.last_period.nbytes
        if self.forecaster is not None:
            n_bytes += self.forecaster.tail.nbytes + self.forecaster.ranges.quantiles.nbytes
            n_bytes += 41 * len(self.rows)  # of each series: unit, constant, last period, group, spread, sign
        if isinstance(self.rows, MappedRows):
            n_bytes += self.rows.n_bytes
            return n_bytes if self.forecaster is None else n_bytes + sum(map(sys.getsizeof, self.unique_ids))
        return n_bytes + sys.getsizeof(self.rows) + sum(map(sys.getsizeof, self.rows))

    @cached_property
    def unique_ids(self) -> Sequence[str]:
        """The tasks in the order of their rows."""
        if self.forecaster is None and isinstance(self.rows, MappedRows):
            return self.rows.ids
        return tuple(self.rows) if self.forecaster is None else self.forecaster.unique_ids

    @cached_property
    def attribute_table(self) -> pl.DataFrame:
        """The attributes of all products, with a column ``unique_id``."""
        stored = {} if self.forecaster is None else self.forecaster.model.metadata.get("attributes", {})
        types = dict.fromkeys(("unique_id", *stored), pl.String)
        table = pl.DataFrame({"unique_id": list(self.unique_ids), **stored}, schema=types)
        if self.added is None:
            return table
        new = pl.DataFrame({"unique_id": self.added.unique_ids}, schema={"unique_id": pl.String})
        if self.added_attributes is not None:
            new = new.join(self.added_attributes, on="unique_id", how="left", maintain_order="left")
        return pl.concat([table, new.select(c for c in new.columns if c in types)], how="diagonal")

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names of the attributes."""
        return tuple(name for name in self.attribute_table.columns if name != "unique_id")

    @cached_property
    def new_products(self) -> NewProducts | None:
        """Products with hardly any history, which are forecast from their like; None where there are none."""
        if self.forecaster is None or not (self.attributes or self.added is not None):
            return None
        try:
            columns = self.added_columns or nothing_known(self.forecaster)
            return new_products(self.forecaster, self.attribute_table, panel=self.added, columns=columns)
        except DataError:  # no product is new, or none could be like it
            return None

    @cached_property
    def groups(self) -> Groups:
        """Tasks that share their weights exactly; found when first needed."""
        return Groups.of_equal(self.weights)

    @cached_property
    def near_matches(self) -> NearMatches:
        """Finds known ids that are like an unknown one; built when first needed."""
        orders = self.rows.near_orders() if isinstance(self.rows, MappedRows) else None
        return NearMatches(self.unique_ids, orders)


def list_models(session: Session, limit: int, cursor: str | None) -> ModelPage:
    """Return one page of models."""
    rows = repository.list_models(session, limit + 1, name_before(cursor))
    return ModelPage.of(list(map(_summary, rows)), limit, lambda model: cursor_after(model.name))


def read_model(session: Session, name: str) -> ModelDetail:
    """Return the model called ``name`` with its newest version."""
    model = repository.find_model(session, name)
    if model is None:
        raise _no_model(session, name)
    newest = read_version(session, name, model.newest_version)
    return ModelDetail(**_summary(model).model_dump(), newest=newest)


def read_selected(session: Session, name: str, number: int | None) -> ModelVersionDetail | ModelDetail:
    """Return one version of the model, or for a bare name the model with its newest version."""
    if number is None and split_alias(name)[1] is None:
        return read_model(session, name)
    return read_version(session, split_alias(name)[0], require_version(session, name, number))


def list_versions(session: Session, name: str, limit: int, cursor: int | None) -> ModelVersionPage:
    """Return one page of the versions of ``name``, newest first."""
    newest_number(session, name)
    rows = repository.list_versions(session, name, limit + 1, cursor)
    return ModelVersionPage.of(list(map(_detail, rows)), limit, lambda version: str(version.version))


def read_version(session: Session, name: str, number: int) -> ModelVersionDetail:
    """Return version ``number`` of the model called ``name``."""
    row = repository.find_version(session, name, number)
    if row is None:
        raise no_version(session, name, number)
    return _detail(row)


def list_products(
    session: Session, name: str, number: int | None, limit: int, cursor: int | None
) -> ProductPage:
    """Return one page of the products of a version, None for the newest, as they were uploaded."""
    version = read_version(session, split_alias(name)[0], require_version(session, name, number))
    first = 0 if cursor is None else cursor
    found = repository.list_products(session, version.id, limit + 1, first)
    return ProductPage.of(found, limit, lambda _: str(first + limit))


def newest_number(session: Session, name: str) -> int:
    """Return the number of the newest version of ``name``."""
    number = repository.newest_number(session, name)
    if number is None:
        raise _no_model(session, name)
    return number


def require_version(session: Session, name: str, number: int | None) -> int:
    """Return ``number`` if the model has that version; for None that of its alias, or its newest number.

    ``name`` is that of a model, or ``name@alias``. Raise NotFound for what there is not.
    """
    base, alias = split_alias(name)
    if alias is not None:
        found = repository.find_alias(session, base, alias)
        if found is None:
            raise no_alias(session, base, alias)
        return found.number
    if number is None:
        return newest_number(session, name)
    if not repository.has_version(session, name, number):
        raise no_version(session, name, number)
    return number


def load(session: Session, name: str, number: int, files: MatrixFiles | None = None) -> StoredModel:
    """Load everything that predictions with version ``number`` need, and verify its digests.

    Large matrices are mapped from ``files``, which other processes share, if these are given.
    """
    detail = read_version(session, name, number)
    try:
        return _read_matrices(session, detail, files)
    except CorruptModel:
        read_version(session, name, number)  # raises NotFound if it was deleted meanwhile
        raise


def remove(session: Session, name: str) -> None:
    """Delete all versions of the model called ``name``, unless an alias or an unfinished job needs them.

    Their numbers are not given again.
    """
    model = lock(session, name)
    _refuse_served(name, repository.list_aliases(session, name))
    jobs = repository.unfinished_jobs(session, name)
    if jobs:
        raise Conflict(
            "model_in_use",
            f"The job {jobs[0]} trains the model {name!r}; cancel it, or wait until it has ended.",
        )
    repository.delete_versions(session, model.id)


def remove_version(session: Session, name: str, number: int) -> None:
    """Delete version ``number`` of the model, unless an alias names it; the number is not given again."""
    model = lock(session, name)
    read_version(session, name, number)
    aliases = repository.list_aliases(session, name)
    _refuse_served(name, [alias for alias in aliases if alias.number == number])
    repository.delete_versions(session, model.id, number)


def _read_matrices(session: Session, detail: ModelVersionDetail, files: MatrixFiles | None) -> StoredModel:
    n_tasks, n_features = detail.n_tasks, len(detail.feature_names)
    weights = load_matrix(session, detail.id, MatrixName.WEIGHTS, n_tasks, n_features, files)
    intercept = np.zeros(n_tasks)
    if has_intercept(detail.configuration):
        intercept = load_matrix(session, detail.id, MatrixName.INTERCEPT, n_tasks, 1)[:, 0]
    rows = load_task_rows(session, detail.id, n_tasks, files)
    history = forecaster = past = None
    if "horizon" in detail.configuration:
        stored = load_matrix(session, detail.id, MatrixName.SERIES, n_tasks, None, files)
        model = CCMTLModel(weights, tuple(rows), tuple(detail.feature_names), intercept=intercept)
        ranges = load_matrix(session, detail.id, MatrixName.RANGES, None, None)
        attributes = None
        if detail.configuration["rows"].get("past"):
            past = load_matrix(session, detail.id, MatrixName.PAST, n_tasks, None)
        if detail.configuration.get("attributes"):
            attributes = load_matrix(session, detail.id, MatrixName.ATTRIBUTES, n_tasks, None)
        told = detail.report.forecaster
        error = None if told is None else told.error
        forecaster = restored(model, stored, ranges, attributes, detail.configuration, error)
    elif detail.configuration["kind"] == "series":
        stored = load_matrix(session, detail.id, MatrixName.HISTORY, n_tasks, 1 + n_features, files)
        history = History.from_matrix(stored)
    frequency = detail.configuration.get("frequency")
    return StoredModel(
        name=detail.model,
        version=detail.version,
        weights=weights,
        intercept=intercept,
        rows=rows,
        feature_names=tuple(detail.feature_names),
        history=history,
        frequency=None if frequency is None else Frequency(frequency),
        forecaster=forecaster,
        column_names=tuple(detail.configuration.get("columns", ())),
        newest_past=past,
        data=detail.data,
    )


def unknown_product(model: StoredModel, unique_id: str) -> NotFound:
    """Return the error for an unknown product; it names the known ids that look like it."""
    near = model.near_matches.find(unique_id) if len(unique_id.encode()) <= MAX_ID_BYTES else []
    hint = f" Did you mean {', '.join(map(repr, near))}?" if near else ""
    return NotFound(
        "unique_id_not_found",
        f"Version {model.version} of {model.name!r} has no unique_id {unique_id[:200]!r}.{hint}",
        suggestions=near,
    )


def no_alias(session: Session, name: str, alias: str) -> NotFound:
    """Return the error for an alias that the model has not, or for an unknown model."""
    newest_number(session, name)
    known = [found.alias.name for found in repository.list_aliases(session, name)]
    return NotFound.named("alias", alias, known)


def _refuse_served(name: str, aliases: Sequence[AliasRow]) -> None:
    if aliases:
        alias, number, _ = aliases[0]
        raise Conflict(
            "model_is_served",
            f"The alias {alias.name!r} serves version {number} of the model {name!r}; delete the alias, or "
            "set it to another version, first.",
        )


def lock(session: Session, name: str) -> Model:
    """Return the model, held until the transaction ends."""
    model = repository.lock_model(session, name)
    if model is None or repository.newest_number(session, name) is None:
        raise _no_model(session, name)
    return model


def _no_model(session: Session, name: str) -> NotFound:
    return NotFound.named("model", name, repository.model_names(session))


def no_version(session: Session, name: str, number: int) -> NotFound:
    """Return the error for a version that the model has not, or for an unknown model."""
    newest = newest_number(session, name)
    return NotFound(
        "model_version_not_found",
        f"The model {name!r} has no version {number}; its newest is {newest}.",
        suggestions=[str(newest)],
    )


def _summary(model: Model) -> ModelSummary:
    return ModelSummary(
        name=model.name,
        n_versions=model.n_versions,
        newest_version=model.newest_version,
        created_at=model.created_at,
    )


def _detail(row: VersionRow) -> ModelVersionDetail:
    version = row.version
    form = ForecastMetrics if "errors_by_step" in version.metrics else Metrics
    return ModelVersionDetail(
        model=row.model_name,
        version=version.number,
        id=version.id,
        created_at=version.created_at,
        aliases=[alias.name for alias in version.aliases],
        training_job=version.training_job_id,
        code_version=version.code_version,
        data=DataUsed(dataset=row.dataset_name, version=row.dataset_version, id=version.dataset_version_id),
        feature_names=version.feature_names,
        n_tasks=version.n_tasks,
        configuration=version.configuration,
        metrics=form.model_validate(version.metrics) if version.metrics else None,
        report=Report.model_validate(version.report),
    )
