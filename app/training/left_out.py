"""Tell which of the data a training could not use, and for which products there will be no forecast."""

from __future__ import annotations

from typing import Any

import numpy as np

from app.training.task_data import TrainingData

MAX_NAMED = 10


def left_out(data: TrainingData) -> tuple[dict[str, Any], list[str]]:
    """Return what a version's report says of the rows that were used, and notes on what is missing.

    Parameters
    ----------
    data : TrainingData
        What is trained on.

    Returns
    -------
    report : dict
        ``rows``: the values there are, how many of them became a target, and their share. Of series also
        ``not_forecast``: the number of products without the newest values that a forecast starts from, and
        the ids of the first.
    notes : list of str
        In words, where less than half was used or a product cannot be forecast.
    """
    used = len(data.dataset.y)
    values = used + data.facts.get("n_periods_without_all_lags", 0)
    share = used / values
    report: dict[str, Any] = {"rows": {"values": values, "used": used, "share": share}}
    notes = []
    if 2 * used < values:
        notes.append(
            f"Only {used} of {values} values ({share:.0%}) could be trained on: the others lack a value in "
            "one of the periods before them. Absent periods can be filled, or fewer lags taken."
        )
    if data.history is not None:
        missing = np.flatnonzero(np.isnan(data.history.lags[:, 0]))
        named = [data.dataset.task_ids[t] for t in missing[:MAX_NAMED]]
        report["not_forecast"] = {"count": len(missing), "examples": named}
        if named:
            more = " and others" if len(missing) > MAX_NAMED else ""
            notes.append(
                f"{len(missing)} of {data.dataset.n_tasks} products cannot be forecast, for want of values "
                f"in their last {data.dataset.n_features} periods: {', '.join(map(repr, named))}{more}."
            )
    return report, notes
