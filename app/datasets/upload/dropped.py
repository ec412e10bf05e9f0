"""Periods of which `partial_last` dropped the rows: an append must hold the whole of such a period.

Where it goes on after the rows that were dropped, the period would be stored without them, and too small.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from app.datasets.schemas import DroppedPeriod
from app.datasets.stored.period_values import PeriodValues, period_text
from ccmtl_core.forecasting import Frequency
from ccmtl_core.inspection import InspectionReport
from ccmtl_core.tables.faults import MAX_LISTED, Fault, FaultList


def dropped_period(report: InspectionReport, times: pl.Series, frequency: Frequency) -> DroppedPeriod | None:
    """Return the period that the policy left out of a file, None where it left none out.

    Parameters
    ----------
    report : InspectionReport
        Of the file.
    times : polars Series of Datetime
        Of its rows, each once or more.
    frequency : Frequency
        What a period is.

    Returns
    -------
    DroppedPeriod or None
    """
    found = [one for one in report.findings if one.code == "partial_last"]
    if not found or report.policies["partial_last"] != "drop":
        return None
    (period,) = frequency.to_period(np.array([found[0].samples[0].ds], dtype="datetime64[us]"))
    of_period = times.filter(frequency.to_period(times.to_numpy()) == period).sort()
    name = period_text(frequency, int(period))
    return DroppedPeriod(period=name, first=of_period[0], last=of_period[-1], rows=found[0].count)


def still_dropped(
    before: Sequence[DroppedPeriod], own: DroppedPeriod | None, times: pl.Series
) -> list[DroppedPeriod]:
    """Return the periods of which dropped rows are missing after an upload.

    Parameters
    ----------
    before : sequence of DroppedPeriod
        Those of the version that the upload is appended to.
    own : DroppedPeriod or None
        What the policy left out of the upload.
    times : polars Series of Datetime
        Of the rows of the upload that are kept.

    Returns
    -------
    list of DroppedPeriod
    """
    left = []
    for one in before:
        n_missing = one.rows - int(times.is_between(one.first, one.last).sum())
        if own is not None and own.period == one.period:
            own = own.model_copy(
                update={"first": min(one.first, own.first), "last": max(one.last, own.last)}
                | {"rows": one.rows + own.rows}
            )
        elif n_missing > 0:
            left.append(one.model_copy(update={"rows": n_missing}))
    return left if own is None else [*left, own]


def refuse_rest(
    dropped: Sequence[DroppedPeriod],
    upload: PeriodValues,
    taken: NDArray[np.bool_],
    frame: pl.DataFrame,
    faults: FaultList,
) -> None:
    """Note the values of an append that lack the rows of their period which were dropped before.

    Parameters
    ----------
    dropped : sequence of DroppedPeriod
        Of the version that is appended to.
    upload : PeriodValues
        What is appended.
    taken : array of bool
        Which of its values lie in periods that have one.
    frame : DataFrame
        Its rows.
    faults : FaultList
        Gets the faults.
    """
    for one in dropped:
        (period,) = upload.frequency.to_period(np.array([one.first], dtype="datetime64[us]"))
        at = np.flatnonzero((upload.period == period) & ~taken)
        ids = upload.unique_ids.gather(np.unique(upload.series[at]))
        times = frame.filter(pl.col("unique_id").is_in(ids.implode()))["ds"]
        times = times.filter(upload.frequency.to_period(times.to_numpy()) == period).sort()
        if not len(times) or times[0].date() <= one.first.date():
            continue
        message = (
            f"rows of the period {one.period}, from {one.first:%Y-%m-%d} on, were dropped by the upload of "
            f"version {one.version}, as the period was not over (`partial_last`), and this file has its rows "
            f"from {times[0]:%Y-%m-%d} on: send the whole period again, or all data with `mode=full`"
        )
        samples = (
            Fault(
                "dropped_period",
                message,
                int(upload.row[i]),
                value=f"{upload.y[i]:g}",
                unique_id=upload.unique_id(int(i)),
                ds=one.period,
            )
            for i in at[np.argsort(upload.row[at])][:MAX_LISTED]
        )
        faults.add_all("dropped_period", len(at), samples)
