"""Tables in requests: what will be known of periods to come, attributes and first values of new products."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from app.http.errors import MAX_ERRORS, Fault, InvalidContent
from app.http.names import hint
from app.registry.service import StoredModel
from ccmtl_core.base.display import counted
from ccmtl_core.forecasting import ForecastModel, Frequency, SeriesColumns, SeriesPanel
from ccmtl_core.tables.dates.timestamps import time_format

Cells = Mapping[str, Sequence[Any]]
LARGEST = 1e15
"""Whole numbers up to about here are exact, and squares of what is fitted to them are far from overflow."""


def future_frame(model: StoredModel, future: Cells | None) -> pl.DataFrame | None:
    """Return the rows of ``future``: ``unique_id`` unless they hold for all, ``period``, and its columns.

    Raises
    ------
    InvalidContent
        Columns that the dataset does not have, lists of other lengths, cells that cannot be read, or two rows
        of a product in one period; each with its place.
    """
    if future is None or model.forecaster is None:
        return None
    names = [name for name in future if name not in ("unique_id", "ds")]
    _check_lists(future, "future", ["ds"])
    unknown = [name for name in names if name not in model.column_names]
    _refuse(
        (
            Fault(
                message=f"there is no such column; {hint(name, model.column_names)}",
                location=f"body.future.{name}",
            )
            for name in unknown
        ),
        len(unknown),
    )
    columns = {"period": _periods(future["ds"], model.forecaster.frequency, "future")}
    if "unique_id" in future:
        columns["unique_id"] = _texts(future["unique_id"], "body.future.unique_id", missing=False)
    columns |= {name: _numbers(future[name], f"body.future.{name}", missing=True) for name in names}
    frame = pl.DataFrame(columns)
    _refuse_too_large(frame, future, names, "future")
    _refuse_repeated(frame, "future")
    return frame


def written(times: pl.Series, frequency: Frequency) -> list[str]:
    """Return times as text: a date, for hours with the time."""
    if frequency is Frequency.INTEGER:
        return [str(number) for number in times]
    form = "%Y-%m-%dT%H:%M:%S" if frequency is Frequency.HOUR else "%Y-%m-%d"
    return times.dt.strftime(form).to_list()


def columns_of(
    forecaster: ForecastModel,
    newest_past: np.ndarray[Any, np.dtype[np.float64]] | None,
    rows: np.ndarray[Any, np.dtype[np.int64]],
    future: pl.DataFrame | None,
) -> SeriesColumns | None:
    """Return what the features of a forecaster read beside the values, for some of its products.

    ``rows`` are theirs; ``newest_past`` (T, C) is known of all its products.
    """
    features = forecaster.features
    names = (*features.past, *features.future)
    if not names:
        return None
    ids = pl.Series([forecaster.unique_ids[row] for row in rows.tolist()], dtype=pl.String)
    parts = []
    if features.past and newest_past is not None:
        known = {name: newest_past[rows, c] for c, name in enumerate(features.past)}
        parts.append(pl.DataFrame({"unique_id": ids, "period": forecaster.last_period[rows], **known}))
    if future is not None:
        given = future.select(c for c in future.columns if c in ("unique_id", "period", *names))
        if "unique_id" not in given.columns:
            given = pl.DataFrame({"unique_id": ids.unique()}).join(given, how="cross")
        parts.append(given)
    if not parts:
        return None
    every = pl.concat(parts, how="diagonal")
    absent = [pl.lit(None, pl.Float64).alias(name) for name in names if name not in every.columns]
    every = (
        every.with_columns(absent)
        .group_by("unique_id", "period")
        .agg(pl.col(names).fill_nan(None).drop_nulls().first())
    )
    cells = every.rename({name: f"c_{i}" for i, name in enumerate(names)})
    return SeriesColumns.of_rows(cells, names, forecaster.frequency, ahead=features.future, spread=False)


def attribute_frame(attributes: Cells) -> pl.DataFrame:
    """Return the attributes of new products: ``unique_id`` and columns of text.

    Raises
    ------
    InvalidContent
        Lists of other lengths, cells that are no text, or a product twice.
    """
    _check_lists(attributes, "attributes", ["unique_id"])
    columns = {
        name: _texts(cells, f"body.attributes.{name}", missing=name != "unique_id")
        for name, cells in attributes.items()
    }
    frame = pl.DataFrame(columns)
    _refuse_repeated(frame, "attributes")
    return frame


def history_panel(history: Cells, frequency: Frequency) -> SeriesPanel:
    """Return the first values of new products.

    Raises
    ------
    InvalidContent
        Other columns, lists of other lengths, cells that cannot be read, or two rows in one period.
    """
    _check_lists(history, "history", ["unique_id", "ds", "y"])
    frame = pl.DataFrame(
        {
            "unique_id": _texts(history["unique_id"], "body.history.unique_id", missing=False),
            "period": _periods(history["ds"], frequency, "history"),
            "y": _numbers(history["y"], "body.history.y", missing=False),
        }
    )
    _refuse_too_large(frame, history, ["y"], "history")
    _refuse_repeated(frame, "history")
    return SeriesPanel.from_frame(
        frame.with_columns(ds=frequency.dated(frame["period"].to_numpy())), frequency
    )


def _check_lists(table: Cells, where: str, needed: Sequence[str]) -> None:
    missing = [name for name in needed if name not in table]
    faults = [Fault(message="is missing", location=f"body.{where}.{name}") for name in missing]
    if where == "history":
        extra = [name for name in table if name not in needed]
        faults += [
            Fault(message=f"there is no such column; {hint(n, needed)}", location=f"body.{where}.{n}")
            for n in extra
        ]
    lengths = {name: len(cells) for name, cells in table.items()}
    most = max(lengths.values(), default=0)
    faults += [
        Fault(
            message=f"is of length {n}; the longest list is of length {most}", location=f"body.{where}.{name}"
        )
        for name, n in lengths.items()
        if n != most
    ]
    _refuse(faults, len(faults))


def _texts(cells: Sequence[Any], where: str, *, missing: bool) -> pl.Series:
    bad = [i for i, v in enumerate(cells) if not (isinstance(v, str) or (missing and v is None))]
    _refuse((Fault(message="must be text", location=f"{where}.{i}") for i in bad), len(bad))
    return pl.Series(cells, dtype=pl.String)


def _numbers(cells: Sequence[Any], where: str, *, missing: bool) -> pl.Series:
    bad = [i for i, v in enumerate(cells) if isinstance(v, str) or (v is None and not missing)]
    _refuse((Fault(message="must be a finite number", location=f"{where}.{i}") for i in bad), len(bad))
    return pl.Series(cells, dtype=pl.Float64)


def _periods(cells: Sequence[Any], frequency: Frequency, where: str) -> pl.Series:
    """The periods of times as uploads have them."""
    form = time_format(None, in_utc=frequency is Frequency.HOUR)
    texts = _texts(cells, f"body.{where}.ds", missing=False)
    moments = pl.DataFrame({"ds": texts}).select(form.parse(pl.col("ds"))).to_series()
    bad = moments.is_null().arg_true().to_list()
    _refuse(
        (
            Fault(
                message=f"not a date in the format {form.name}",
                location=f"body.{where}.ds.{i}",
                value=cells[i],
            )
            for i in bad
        ),
        len(bad),
    )
    return pl.Series(frequency.to_period(moments.to_numpy()), dtype=pl.Int64)


def _refuse_too_large(frame: pl.DataFrame, cells: Cells, names: Sequence[str], where: str) -> None:
    """Refuse numbers that no forecast could be made of, with their product and date."""
    bad = [(name, i) for name in names for i in (frame[name].abs() > LARGEST).arg_true().to_list()]
    _refuse(
        (
            Fault(
                message=f"{cells[name][i]:g}{_of(cells, i)} at {cells['ds'][i]} is too large to forecast "
                f"with; numbers go up to {LARGEST:g}. Is it mistyped?",
                location=f"body.{where}.{name}.{i}",
            )
            for name, i in bad
        ),
        len(bad),
    )


def _of(cells: Cells, i: int) -> str:
    return f" of the product {cells['unique_id'][i]!r}" if "unique_id" in cells else ""


def _refuse_repeated(frame: pl.DataFrame, where: str) -> None:
    keys = [name for name in ("unique_id", "period") if name in frame.columns]
    again = (~frame.select(pl.struct(keys).is_first_distinct()).to_series()).arg_true().to_list()
    what = "this product has a row for this period before"
    if len(keys) == 1:
        what = f"this {'period' if keys == ['period'] else 'product'} has a row before"
    _refuse(
        (Fault(message=what, location=f"body.{where}.{keys[-1].replace('period', 'ds')}.{i}") for i in again),
        len(again),
    )


def _refuse(faults: Iterable[Fault], n_faults: int) -> None:
    if n_faults:
        listed = [fault for fault, _ in zip(faults, range(MAX_ERRORS), strict=False)]
        raise InvalidContent(
            "invalid_request",
            f"The request has {counted(n_faults, 'fault')}; see `errors`.",
            errors=listed,
            error_count=n_faults,
        )
