"""Public values survive pickle, copy and joblib, and their read-only arrays stay read-only."""

from __future__ import annotations

import copy
import dataclasses
import io
import pickle
from collections.abc import Callable, Iterator
from datetime import date
from enum import Enum
from functools import cache
from typing import Any

import joblib
import numpy as np
import polars as pl
import pytest

import ccmtl_core
import ccmtl_core.forecasting
from ccmtl_core import (
    CCMTLModel,
    ModelChoices,
    Progress,
    SelectionProgress,
    SufficientStatistics,
    TaskDataset,
    TriangularStatistics,
    UnknownTaskError,
    fit,
    fit_path,
    fusion_threshold,
    random_coefficients,
    select,
)
from ccmtl_core.forecasting import (
    RowFeatures,
    SeriesColumns,
    SeriesPanel,
    SeriesTable,
    backtest,
    choose_rows,
    direct_rows,
    fit_forecaster,
    lag_dataset,
    new_products,
    without_lone_values,
)

NAMES = sorted(
    name
    for face in (ccmtl_core, ccmtl_core.forecasting)
    for name in face.__all__
    if isinstance(getattr(face, name), type) and not name.endswith("Error")
)


@cache
def public_values() -> dict[str, Any]:
    """One value of each public class, by the name of the class."""
    rng = np.random.default_rng(0)
    X, y, task = rng.standard_normal((60, 2)), rng.standard_normal(60), np.repeat(np.arange(6), 10)
    data = TaskDataset.from_long(X, y, task)
    statistics = SufficientStatistics.from_dataset(data)
    panel = SeriesPanel(("a", "b"), [0, 4, 8], [0, 1, 2, 3] * 2, np.arange(8.0), "D")
    model = CCMTLModel([[1.0, 2.0]], ["a"], ["x", "z"], {"lags": [1, 2]}, [3.0])
    model.predict([[1.0, 1.0]], "a")  # fills what is computed once
    result = fit(data, fusion_strength=1.0, n_neighbors=2, fit_intercept=True)
    path = fit_path(data, [0.1, 1.0], n_neighbors=2, fit_intercept=True, metric="mahalanobis")
    rows = RowFeatures(windows=(1,))
    tried = choose_rows(panel, 1, widest=rows)
    forecaster = fit_forecaster(panel, 1, rows=rows)
    shops = pl.DataFrame({"unique_id": ["a", "b", "new"], "shop": ["x", "x", "x"]})
    holidays = pl.DataFrame({"ds": [date(2024, 12, 24)], "holiday": [1.0]})
    values = [
        rows,
        SeriesColumns.from_frame(holidays, "D"),
        SeriesTable(panel, None, shops),
        tried,
        tried.tried[0],
        direct_rows(panel, rows, 1),
        without_lone_values(panel),
        forecaster,
        forecaster.ranges,
        new_products(forecaster, shops),
        backtest(panel, 1, n_origins=1, rows=rows),
        data,
        statistics,
        TriangularStatistics.from_dataset(data),
        panel,
        panel.frequency,
        lag_dataset(panel, 2),
        model,
        result,
        result.graph,
        result.report,
        result.report.status,
        path,
        path.points[0],
        select(data, [0.1, 1.0], n_folds=2, n_neighbors=2, rng=rng),
        fusion_threshold(statistics, result.graph),
        random_coefficients(statistics),
        ModelChoices(fit_intercept=True),
        Progress("solve", 1, 2.0, 0.1, 0.5),
        SelectionProgress(1, 2, (0.1,), (3.0,)),
    ]
    return {type(value).__name__: value for value in values}


WAYS: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
    "deepcopy": copy.deepcopy,
    "joblib": lambda value: through_joblib(value),
}


def through_joblib(value: Any) -> Any:
    stream = io.BytesIO()
    joblib.dump(value, stream)
    stream.seek(0)
    return joblib.load(stream)


def parts(value: Any, where: str = "") -> Iterator[tuple[str, Any]]:
    """What a value holds, down to arrays and plain values, each with its place."""
    if isinstance(value, pl.DataFrame):
        yield where, value.to_dict(as_series=False)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from parts(getattr(value, field.name), f"{where}.{field.name}")
    elif isinstance(value, tuple | list):
        for place, part in enumerate(value):
            yield from parts(part, f"{where}[{place}]")
    elif hasattr(value, "items"):
        yield where, type(value)
        for key, part in value.items():
            yield from parts(part, f"{where}[{key}]")
    else:
        yield where, value


def test_every_public_value_is_tried() -> None:
    assert sorted(public_values()) == NAMES


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", NAMES)
def test_copies_hold_the_same_and_stay_frozen(name: str, way: str) -> None:
    value = public_values()[name]
    new = WAYS[way](value)
    assert type(new) is type(value)
    assert new is value if isinstance(value, Enum) else new is not value
    assert repr(new) == repr(value)
    for (place, before), (same_place, after) in zip(parts(value), parts(new), strict=True):
        assert place == same_place
        if isinstance(before, np.ndarray):
            np.testing.assert_array_equal(after, before)
            assert before.flags.writeable or not after.flags.writeable, place
        else:
            assert after == before, place


def test_a_copied_model_predicts_the_same_and_cannot_be_changed() -> None:
    model = public_values()["CCMTLModel"]
    new = copy.deepcopy(model)
    assert new.predict([[1.0, 1.0]], "a") == model.predict([[1.0, 1.0]], "a")
    with pytest.raises(ValueError, match="WRITEABLE"):
        new.weights.flags.writeable = True
    with pytest.raises(TypeError):
        new.metadata["lags"] = 3


def test_a_shallow_copy_leaves_the_callers_array_writable() -> None:
    X = np.ones((1, 1))
    copy.copy(TaskDataset(X, [1.0], [0, 1], ("a",), ("x",)))
    X[0, 0] = 2.0


def test_errors_pass_between_processes() -> None:
    error = pickle.loads(pickle.dumps(UnknownTaskError("471", ["0471"])))
    assert str(error) == "unknown task '471'; near matches: '0471'"
