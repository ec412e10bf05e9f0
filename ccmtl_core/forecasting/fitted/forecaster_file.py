"""The file of a forecaster: one ``.npz`` without pickle, as :mod:`ccmtl_core.model.model_file` writes it.

Arrays: ``weights`` (T, P), ``intercept`` (T,), ``tail`` (T, R), ``quantiles`` (G, h, q) and ``series``
(8, T): scale, whether forecasts end at zero, constant, last period, and what the ranges keep of each series.
All else is in the header as JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ccmtl_core.base.exceptions import DataError, ModelFileError, ParameterError
from ccmtl_core.forecasting.calibration.range_table import RangeTable
from ccmtl_core.forecasting.features import RowFeatures
from ccmtl_core.model.ccmtl_model import CCMTLModel
from ccmtl_core.model.model_file import read_arrays, write_arrays

FORMATS = {"ccmtl-forecast/1": {"weights": 2, "intercept": 1, "series": 2, "tail": 2, "quantiles": 3}}

Made = TypeVar("Made")


def write_forecaster(path: str | Path, fields: Mapping[str, Any]) -> None:
    """Write the fields of a forecaster, whole or not at all."""
    model, ranges = fields["model"], fields["ranges"]
    of_series = (fields[name] for name in ("scale", "nonnegative", "constant", "last_period"))
    arrays = {
        "weights": model.weights,
        "intercept": model.intercept,
        "series": np.stack([*(part.astype(np.float64) for part in of_series), *ranges.of_series]),
        "tail": fields["tail"],
        "quantiles": ranges.tables,
    }
    header = {
        "unique_ids": model.task_ids,
        "metadata": dict(model.metadata),
        "features": fields["features"].to_dict(),
        "horizon": fields["horizon"],
        "frequency": fields["frequency"].value,
        "report": dict(fields["report"]),
    }
    write_arrays(path, next(iter(FORMATS)), arrays, header)


def read_forecaster(path: str | Path, make: Callable[..., Made]) -> Made:
    """Return what ``make`` makes of the fields that :func:`write_forecaster` wrote.

    Raises
    ------
    ModelFileError
        The file is damaged or is not one of a forecaster.
    """
    arrays, header = read_arrays(path, FORMATS)
    try:
        features = RowFeatures.from_dict(header["features"])
        weights, ids, metadata = arrays["weights"], header["unique_ids"], header["metadata"]
        scale, nonnegative, constant, last_period, *of_ranges = arrays["series"]
        return make(
            model=CCMTLModel(weights, ids, features.names, metadata, arrays["intercept"]),
            features=features,
            horizon=header["horizon"],
            frequency=header["frequency"],
            scale=scale,
            nonnegative=nonnegative != 0.0,
            constant=constant,
            tail=arrays["tail"],
            last_period=last_period.astype(np.int64),
            ranges=RangeTable.from_parts(arrays["quantiles"], np.array(of_ranges)),
            report=header["report"],
        )
    except (DataError, ParameterError, KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"{path} does not hold a whole forecaster: {error}") from error
