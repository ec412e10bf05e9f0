"""What is stated of a file reaches its reader from each command that reads one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import pytest
from typer.testing import CliRunner, Result

from app.commands.cli import cli
from app.commands.file_options import Every
from app.reading.stated import OF_SHAPE, OF_TEXT, POLICIES
from ccmtl_core import CCMTLModel
from ccmtl_core.forecasting import Frequency
from ccmtl_core.inspection.policies import CHOICES
from ccmtl_core.tables import ReadOptions
from ccmtl_core.tables.dialects.dialect import DECIMALS, RAGGED, SHAPES, THOUSANDS

TEXT = "Sales\n" + "".join(f"00{i % 3}^{i}^{i * i},5^{7 - i % 4}\n" for i in range(30))
"""Carets, a title, no header, decimal commas."""
STATE = (
    "--delimiter",
    "^",
    "--encoding",
    "utf-16",
    "--decimal",
    ",",
    "--comment",
    "Sales",
    "--header-row",
    "0",
)
DAYS = "sku|" + "|".join(f"2024-01-{day:02}" for day in range(1, 22)) + "\n007" + "|1,234.5" * 21 + "\n"


def run(*arguments: object, code: int = 0) -> Result:
    done = CliRunner().invoke(cli, list(map(str, arguments)))
    assert done.exit_code == code, done.output
    return done


def test_the_options_are_those_of_the_library() -> None:
    assert list(OF_TEXT | OF_SHAPE) == list(ReadOptions.__dataclass_fields__)
    assert {name: get_args(one.kind) for name, one in POLICIES.items()} == dict(CHOICES)
    assert get_args(Every) == tuple(Frequency)
    allowed = {"decimal": DECIMALS, "thousands": THOUSANDS, "ragged": RAGGED, "shape": SHAPES}
    stated = {name: get_args(one.kind) for name, one in (OF_TEXT | OF_SHAPE).items()}
    assert {name: set(values) for name, values in stated.items() if values} == {
        name: set(values) for name, values in allowed.items()
    }


def test_samples_are_fitted_and_predicted_as_stated(tmp_path: Path) -> None:
    (tmp_path / "sales").write_text(TEXT, "utf-16")
    columns = ("--task", "column_1", "--target", "column_3", "--features", "column_2,column_4")
    fit = ("fit", tmp_path / "sales", *columns, "--fusion-strength", "1")
    run(*fit, *STATE, "--output", tmp_path / "m.npz")
    assert set(CCMTLModel.load(tmp_path / "m.npz").task_ids) == {"000", "001", "002"}
    done = run("predict", tmp_path / "m.npz", tmp_path / "sales", *STATE)
    assert done.stdout.count("\n") == 31
    assert "--shape: these are for series" in run(*fit, "--shape", "wide", code=2).stderr


@pytest.mark.parametrize("more", [(), ("--shape", "wide", "--periods", "2024-*", "--delimiter", "|")])
def test_series_are_inspected_as_stated(tmp_path: Path, more: tuple[str, ...]) -> None:
    (tmp_path / "sales").write_text(DAYS)
    report = json.loads(run("inspect", tmp_path / "sales", "--thousands", ",", *more, "--json").stdout)
    traits = {name: (trait["value"], trait["origin"]) for name, trait in report["traits"].items()}
    how = "stated" if more else "guessed"
    assert traits["delimiter"] == ("|", how)
    assert traits["shape"] == ("a column for each period", how)
    assert traits["thousands"] == (",", "stated")
    assert report["rows_used"] == 21


def test_series_are_forecast_as_stated(tmp_path: Path) -> None:
    (tmp_path / "sales").write_text(DAYS)
    lags = ("--lags", 1, "--frequency", "D", "--fusion-strength", "0", "--output", tmp_path / "m.npz")
    run("fit", tmp_path / "sales", *lags, "--thousands", ",")
    done = run("forecast", tmp_path / "m.npz", tmp_path / "sales", "--horizon", 1, "--thousands", ",")
    assert done.stdout.splitlines()[1].startswith("007,2024-01-22,1234.")


def test_what_cannot_be_meant_is_a_wrong_argument(tmp_path: Path) -> None:
    (tmp_path / "sales").write_text(DAYS)
    assert (
        "no encoding 'klingon'" in run("inspect", tmp_path / "sales", "--encoding", "klingon", code=2).stderr
    )
