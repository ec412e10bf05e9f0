"""Hold products of Walmart out of a fit, whole departments or single ones, and forecast them from their like.

Each is forecast for the last eight weeks from some of its newest weeks before, or from none. The rival beside
it is the pooled model, least squares on the rows of all other products, with the same weeks of the product;
where there are none, it is the mean forecast of all other products.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable

import numpy as np
import polars as pl

from benchmarks.forecasting.scores import score
from benchmarks.forecasting.sets import ForecastSet, walmart
from benchmarks.one_core import run_with_one_thread_each
from benchmarks.report import Bar, Section, step
from benchmarks.runner import Sections, command_line, run
from benchmarks.selection.data import WALMART
from ccmtl_core import pooled_weights
from ccmtl_core.base.types import BoolArray, FloatArray, IntArray
from ccmtl_core.forecasting import (
    ForecastModel,
    SeriesPanel,
    direct_statistics,
    fit_forecaster,
    latest_rows,
    latest_tails,
    new_products,
)

N_VALUES = (0, 1, 2, 4, 8, 13, 26, 52, 135)
N_ORIGINS = 40
EVERY = 5


def departments(chosen: argparse.Namespace) -> Section:
    """Every fifth department is held out in all stores: its like are other departments of its store."""
    return _measured(chosen, lambda dept: np.isin(dept, np.unique(dept)[EVERY - 1 :: EVERY]))


def products(chosen: argparse.Namespace) -> Section:
    """Every fifth product is held out: most of its department's are left in other stores."""
    return _measured(chosen, lambda dept: np.arange(len(dept)) % EVERY == EVERY - 1)


def _measured(chosen: argparse.Namespace, held_out_of: Callable[[IntArray], BoolArray]) -> Section:
    if not (chosen.data / WALMART).exists():
        return Section(skipped=f"{chosen.data / WALMART} is not there")
    data = walmart(chosen.data)
    stores, departments = zip(*(name.split("/") for name in data.panel.unique_ids), strict=True)
    table = pl.DataFrame({"unique_id": data.panel.unique_ids, "store": stores, "department": departments})
    held = held_out_of(np.array(departments, dtype=np.int64))
    others, new = data.panel.take(np.flatnonzero(~held)), data.take(np.flatnonzero(held))
    step(f"fitting {others.n_series:,} products, to forecast {new.panel.n_series} others")
    forecaster = fit_forecaster(others, new.horizon)
    blocks = direct_statistics(others, forecaster.features, new.horizon, n_blocks=1, n_origins=N_ORIGINS)
    pooled, mean = pooled_weights(blocks[0]), forecaster.point_forecasts().mean(axis=0)
    rows, errors = [], {}
    for n in N_VALUES:
        panel = _newest(new, n) if n else None
        like = new_products(forecaster, table, panel=panel)
        place = {name: t for t, name in enumerate(like.forecaster.unique_ids)}
        yhat = like.forecaster.point_forecasts()[[place[name] for name in new.panel.unique_ids]]
        rival = np.tile(mean, (len(yhat), 1)) if panel is None else _pooled(forecaster, pooled, panel)
        ours, theirs = score(new, yhat), score(new, rival)
        errors[n] = ours.rmsse / theirs.rmsse
        rows.append(
            {
                "weeks known": n,
                "from like ones": like.status.count("from_like"),
                "RMSSE": ours.rmsse,
                "of the rival": theirs.rmsse,
                "WAPE": ours.wape,
                "WAPE of the rival": theirs.wape,
                "bias": ours.bias,
                "bias of the rival": theirs.bias,
                **_of_ranges(new, like.forecaster, rows=[place[name] for name in new.panel.unique_ids]),
            }
        )
    bars = [
        Bar("RMSSE over that of the pooled model, whole history", errors[N_VALUES[-1]], 1.0),
        Bar("RMSSE over that of the mean of all, no history", errors[0], 1.0),
    ]
    return Section({f"{new.panel.n_series} products that are new": rows}, bars)


def _of_ranges(new: ForecastSet, forecaster: ForecastModel, rows: list[int]) -> dict[str, float]:
    """Share of the values that ranges hold, and mean Winkler scores in units of each series' changes."""
    unit = np.sqrt((np.diff(new.history, axis=1) ** 2).mean(axis=1))
    some, y = unit > 0.0, new.held_out
    found = {}
    for level in (80, 95):
        p = (1.0 - level / 100.0) / 2.0
        low, high = np.moveaxis(forecaster.quantile_forecasts([p, 1.0 - p])[rows], 2, 0)
        outside = np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0)
        found[f"held by {level}"] = float((outside == 0.0).mean())
        found[f"Winkler {level}"] = float(((high - low + outside / p)[some] / unit[some, None]).mean())
    return found


def _newest(data: ForecastSet, n: int) -> SeriesPanel:
    """The newest n values of each series."""
    T = data.panel.n_series
    values, period = data.history[:, -n:], data.panel.period.reshape(T, -1)[:, -n:]
    ids, frequency = data.panel.unique_ids, data.panel.frequency
    return SeriesPanel(ids, np.arange(T + 1) * n, period.ravel(), values.ravel(), frequency)


def _pooled(forecaster: ForecastModel, weights: FloatArray, panel: SeriesPanel) -> FloatArray:
    """Forecasts of one model for all, from the values that are known."""
    features, steps = forecaster.features, range(1, forecaster.horizon + 1)
    tail, last = latest_tails(panel, features.reach)
    X, _ = latest_rows(tail, features, np.ones(len(tail)), steps, last, panel.frequency)
    yhat: FloatArray = np.maximum(X @ weights, 0.0)
    return yhat


SECTIONS: Sections = {"departments": departments, "products": products}

if __name__ == "__main__":
    options = command_line("new_products", __doc__, SECTIONS, f"folder with {WALMART}")
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    chosen_options = options.parse_args()
    run_with_one_thread_each()
    sys.exit(run(SECTIONS, chosen_options))
