"""Small panels of sales, and the features of their rows."""

from __future__ import annotations

import numpy as np

from ccmtl_core.forecasting import RowFeatures, SeriesPanel

ROWS = RowFeatures(windows=(1, 3), trends=(2,), seasons=((4, 1),))


def panel_of(*series: list[float], frequency: str = "D", start: int = 0) -> SeriesPanel:
    offsets = np.concatenate([[0], np.cumsum([len(own) for own in series])])
    period = [start + p for own in series for p in range(len(own))]
    values = [value for own in series for value in own]
    return SeriesPanel(tuple(f"s{t}" for t in range(len(series))), offsets, period, values, frequency)  # type: ignore[arg-type]


def noisy(n_series: int = 6, n: int = 40, seed: int = 0) -> SeriesPanel:
    rng = np.random.default_rng(seed)
    size = rng.lognormal(2.0, 1.0, n_series)[:, None]
    season = np.tile([1.0, 3.0, 2.0, 0.5], (n_series, n))[:, :n]
    return panel_of(*(size * (season + 0.2 * rng.normal(size=(n_series, n)) + 1.0)).tolist())
