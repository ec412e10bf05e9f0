"""Tables of the errors of forecasts of windows, and in plain words who wins."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from ccmtl_core.base.types import FloatArray
from ccmtl_core.forecasting import metrics
from ccmtl_core.forecasting.backtesting.windows import NAIVE, OURS, SAME_ROWS, WITH_RANGES, Window

TIMES_WORSE, LEAST_WORSE = 2.0, 0.05
"""How much larger the WAPE of totals must be than that of a naive forecast to be told."""


class Scores:
    """All windows side by side, and the tables of their errors."""

    def __init__(
        self,
        windows: Sequence[Window],
        names: Sequence[str],
        wanted: Mapping[str, float],
        quantiles: Sequence[float],
    ) -> None:
        def beside(parts: Sequence[FloatArray]) -> FloatArray:
            return np.concatenate(parts, axis=1)

        self.names, self.wanted, self.h = names, wanted, windows[0].y.shape[1]
        self.quantiles, self.of_quantiles = quantiles, [window.quantiles for window in windows]
        self.yhat = {name: beside([w.yhat[name] for w in windows]) for name in names}
        known = ~np.isnan(self.yhat[OURS])
        self.counts = np.asarray(known.any(axis=1))
        self.y = np.where(known, beside([w.y for w in windows]), np.nan)
        self.absolute, self.root = (beside([w.units[i] for w in windows]) for i in (0, 1))
        ranged = [name for name in WITH_RANGES if name in windows[0].ends]
        self.ends = {name: beside([w.ends[name] for w in windows]) for name in ranged}
        self.pit = {name: beside([w.pit[name] for w in windows]) for name in ranged}
        self.loss = {name: beside([w.quantiles[name].loss for w in windows]) for name in windows[0].quantiles}
        self.volume = windows[-1].volume

    def by_quantile(self) -> pl.DataFrame:
        """Errors of each quantile over all values, of the methods that have ranges."""
        kinds = {"method": pl.String, **dict.fromkeys(("quantile", "pinball", "coverage", "pit"), pl.Float64)}
        frames = [pl.DataFrame(schema=kinds)]
        for name in self.loss:
            each = [scores[name] for scores in self.of_quantiles]
            loss, reached, mass, n = np.sum([one.totals for one in each], axis=0)
            n_in_units = np.array(sum(one.n_in_units for one in each))
            shares = [metrics.quotient(*pair) for pair in ((loss, n_in_units), (reached, n), (mass, n))]
            columns = [[name] * len(loss), self.quantiles, *shares]
            frames.append(pl.DataFrame(dict(zip(kinds, columns, strict=True)), schema=kinds).fill_nan(None))
        return pl.concat(frames)

    def tables(self, ids: Sequence[str]) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame, pl.DataFrame]:
        """Overall, by decile, by step and by series."""
        every, columns = slice(None), np.arange(self.y.shape[1])
        overall = self._frame({}, every, every, "all", totals=True)
        members = np.flatnonzero(self.counts)
        order = members[np.argsort(self.volume[members], kind="stable")]
        deciles = [
            self._frame({"decile": d + 1, "n_series": len(part)}, np.sort(part), every, "all")
            for d, part in enumerate(np.array_split(order, min(10, max(len(order), 1))))
        ]
        steps = [self._frame({"step": k + 1}, every, columns % self.h == k, "all") for k in range(self.h)]
        series = self._frame({}, members, every, "series")
        named = np.array(ids, dtype=object)[members].tolist()
        column = pl.Series("unique_id", named * len(self.names), dtype=pl.String)
        return overall, pl.concat(deciles), pl.concat(steps), series.insert_column(0, column)

    def _frame(
        self, keys: Mapping[str, int], series: Any, columns: Any, by: metrics.By, *, totals: bool = False
    ) -> pl.DataFrame:
        """The numbers of each method for some series and columns."""
        frames = []
        for name in self.names:
            numbers = self._numbers(name, series, columns, by)
            if totals:
                known = ~np.isnan(self.y)
                y, yhat = (np.where(known, v, 0.0).sum(axis=0) for v in (self.y, self.yhat[name]))
                numbers["wape_of_totals"] = metrics.wape(y[None], yhat[None])
            values = {key: np.atleast_1d(number) for key, number in numbers.items()}
            n = len(values["wape"])
            head = {**{key: [value] * n for key, value in keys.items()}, "method": [name] * n}
            frames.append(pl.DataFrame(head | values).with_columns(pl.col(list(values)).fill_nan(None)))
        return pl.concat(frames)

    def _numbers(self, name: str, series: Any, columns: Any, by: metrics.By) -> dict[str, FloatArray]:
        def part(values: FloatArray) -> FloatArray:
            return np.asarray(values[series][:, columns])

        y, yhat = part(self.y), part(self.yhat[name])
        numbers = {
            "wape": metrics.wape(y, yhat, by),
            "mase": metrics.mase(y, yhat, part(self.absolute), by),
            "rmsse": metrics.rmsse(y, yhat, part(self.root), by),
            "bias": metrics.bias(y, yhat, by),
        }
        if not (self.wanted or self.quantiles):
            return numbers
        nothing = np.full(numbers["wape"].shape, np.nan)
        unit = np.where(part(self.root) > 0.0, part(self.root), np.nan)
        losses = []
        probabilities = list(self.wanted.values())
        for q in range(0, len(probabilities), 2):
            label = list(self.wanted)[q].removeprefix("yhat-lo-")
            keys = f"coverage-{label}", f"pit-{label}", f"winkler-{label}"
            if name not in self.ends:
                numbers |= dict.fromkeys(keys, nothing)
                continue
            low, high = (part(self.ends[name][:, :, q + i]) for i in (0, 1))
            pit = part(self.pit[name])
            middle = np.where(np.isnan(pit), np.nan, np.abs(pit - 0.5))
            scaled = y / unit, low / unit, high / unit
            half = np.full(pit.shape, 0.5 - probabilities[q])
            inside = metrics.coverage(middle, np.zeros(pit.shape), half, by)
            numbers |= dict(
                zip(
                    keys,
                    (metrics.coverage(y, low, high, by), inside, metrics.winkler(*scaled, float(label), by)),
                    strict=True,
                )
            )
            losses += [metrics.pinball(scaled[0], scaled[1 + i], probabilities[q + i], by) for i in (0, 1)]
        if name in self.loss:
            losses.append(metrics.mean(part(self.loss[name]) / unit, by))
        n_told = len(self.wanted) + len(self.quantiles)
        numbers["pinball"] = np.asarray(np.sum(losses, axis=0) / n_told) if losses else nothing
        return numbers


def verdict_on(overall: pl.DataFrame, per_series: pl.DataFrame, n_without: int) -> str:
    """Say who wins, whose sums are nearer if not the model's, and how many series are not scored."""
    said = [*_on_errors(overall, per_series), *_on_sums(overall)]
    if n_without:
        said.append(f"Not scored, without a value before any window: {n_without:,} series.")
    return " ".join(said)


def _on_sums(overall: pl.DataFrame) -> list[str]:
    """A sentence where the model's sums are much worse than those of a naive forecast."""
    of_totals = dict(zip(overall["method"], overall["wape_of_totals"], strict=True))
    naive = {name: of_totals[name] for name in NAIVE if of_totals.get(name) is not None}
    ours, bias = of_totals[OURS], overall.filter(method=OURS)["bias"].item()
    if ours is None or not naive:
        return []
    best = min(naive, key=lambda name: naive[name])
    if ours - naive[best] < LEAST_WORSE or ours < TIMES_WORSE * naive[best]:
        return []
    is_bias = abs(bias) >= ours / 2
    where = f"in sum {abs(bias):.0%} too {'low' if bias < 0 else 'high'}" if is_bias else "far off in sum"
    return [
        f"But the forecasts of {OURS} are {where}: WAPE of totals {ours:.3g}, that of {best} "
        f"{naive[best]:.3g}."
    ]


def _on_errors(overall: pl.DataFrame, per_series: pl.DataFrame) -> list[str]:
    score, named = "rmsse", "mean RMSSE"
    if overall.filter(method=OURS)["rmsse"].item() is None:
        score, named = "wape", "WAPE"
    errors = dict(zip(overall["method"], overall[score], strict=True))
    ours = errors.pop(OURS)
    known = {name: error for name, error in errors.items() if error is not None}
    if ours is None or not known:
        return ["Nothing can be compared: no series changed before a window, or there is no rival."]
    naive = {name: error for name, error in known.items() if name in NAIVE}
    said = []
    if naive:
        best = min(naive, key=lambda name: naive[name])
        both = f"{named} {naive[best]:.3g} against {ours:.3g} of {OURS}"
        if naive[best] < ours:
            said.append(f"A naive forecast wins: {best}, {both}.")
            if best == "zero":
                said.append(
                    "Zero is right so often that this error rewards it, though it plans for no sales at all."
                )
        elif naive[best] == ours:
            said.append(f"No better than a naive forecast: {best}, {both}.")
        else:
            share = _share_better(per_series, best, score)
            gain = f"{OURS} wins over the naive forecasts: {named} {ours:.3g}, the best of them is {best} "
            said.append(f"{gain}with {naive[best]:.3g}; it is the better one for {share:.0%} of the series.")
    if alike := {name: error for name, error in known.items() if name in SAME_ROWS}:
        best = min(alike, key=lambda name: alike[name])
        relation = "less error than" if ours < alike[best] else "more error than"
        gap = abs(1.0 - ours / alike[best]) if alike[best] else math.inf * (ours > 0) if ours else 0.0
        said.append(
            f"On the same rows it has {gap:.1%} {relation} {best} ({alike[best]:.3g})."
            if gap >= 5e-4
            else f"On the same rows it is as good as {best} ({alike[best]:.3g})."
        )
    return said


def _share_better(per_series: pl.DataFrame, rival: str, score: str) -> float:
    """Share of the series for which the model has the smaller error."""
    ours, theirs = (per_series.filter(method=name)[score] for name in (OURS, rival))
    return float(np.mean((ours < theirs).fill_null(False).to_numpy()))
