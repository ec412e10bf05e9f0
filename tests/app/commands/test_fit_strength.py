"""``ccmtl fit`` chooses the strength: as the library does, with rivals beside it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import ccmtl_core
from ccmtl_core import CCMTLModel, SufficientStatistics, statistics_frame
from tests.app.commands.test_fit_model import COLUMNS, dataset_of, run


def test_the_strength_is_chosen_as_the_library_chooses_it(
    csv: Path, table: pl.DataFrame, tmp_path: Path
) -> None:
    model_file = tmp_path / "model.npz"
    options = ["--fusion-strength", "0,1,10,1000", "--n-folds", "3", "--fit-intercept"]
    done = run(csv, *COLUMNS, *options, "--json", "--output", model_file)
    assert done.exit_code == 0, done.stderr
    report = json.loads(done.stdout)
    expected = ccmtl_core.select(dataset_of(table), [0.0, 1.0, 10.0, 1000.0], n_folds=3, fit_intercept=True)
    assert report["fusion_strength"] == expected.fusion_strength
    chosen = report["selection"]
    assert chosen["fusion_strengths"] == [0.0, 1.0, 10.0, 1000.0]
    assert chosen["errors"] == pytest.approx(expected.errors.tolist(), rel=1e-3)
    assert (chosen["folds"], chosen["order"]) == ("random", None)
    assert set(chosen["rivals"]) == set(expected.rivals)
    for rival, errors in expected.rivals.items():
        assert chosen["rivals"][rival] == pytest.approx(errors.mean())
    model = CCMTLModel.load(model_file)
    assert np.allclose(model.weights, expected.fit.model.weights, atol=1e-2)
    assert np.allclose(model.intercept, expected.fit.model.intercept, atol=1e-2)
    people = run(csv, *COLUMNS, "--fusion-strength", "auto", "--folds", "contiguous", "--fit-intercept")
    assert "best of 21 strengths on 5 contiguous folds by the order of rows" in people.stdout
    assert ", shrunk " in people.stdout
    assert ", shrunk same choices " in people.stdout


def test_rivals_with_the_same_choices_are_not_listed_where_there_are_none(csv: Path) -> None:
    shown = run(csv, *COLUMNS, "--fusion-strength", "0,1", "--n-folds", "2").stdout
    assert "; pooled " in shown
    assert "same choices" not in shown


def test_a_plain_rival_that_did_better_is_named_as_in_the_service(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    X, task = rng.standard_normal((90, 2)), np.arange(90) % 30
    y = X @ [1.0, -1.0] + 3.0 * rng.standard_normal(90)
    pl.DataFrame({"id": task, "y": y, "a": X[:, 0], "b": X[:, 1]}).write_csv(tmp_path / "noise.csv")
    options = ["--fusion-strength", "0,1e-3", "--n-folds", "3"]
    done = run(tmp_path / "noise.csv", *COLUMNS, *options, "--json")
    assert done.exit_code == 0, done.stderr
    report = json.loads(done.stdout)
    chosen = report["selection"]
    least, error = min(chosen["rivals"].values()), chosen["errors"][chosen["chosen"]]
    assert report["notes"][:2] == [
        "On the folds that chose the strength the rival shrunk (each drawn towards the pooled model) "
        f"has a smaller error than this model, {least:.6g} against {error:.6g}.",
        "What to try: fit_intercept true, or loss_scaling spread, or metric mahalanobis, or the rival itself "
        "(ccmtl_core.rival_models fits it).",
    ]
    assert "the rival shrunk" in run(tmp_path / "noise.csv", *COLUMNS, *options).stdout


def test_statistics_by_fold_choose_too(table: pl.DataFrame, tmp_path: Path) -> None:
    data = dataset_of(table)
    fold = np.arange(len(data.y)) % 3
    parts = SufficientStatistics.by_fold(data, fold, 3)
    frames = [statistics_frame(part).with_columns(fold=pl.lit(f)) for f, part in enumerate(parts)]
    pl.concat(frames).write_csv(tmp_path / "folds.csv")
    options = ["--fusion-strength", "0,3", "--json"]
    done = run("--statistics", tmp_path / "folds.csv", *options)
    assert done.exit_code == 0, done.stderr
    errors = json.loads(done.stdout)["selection"]["errors"]
    assert errors == pytest.approx(ccmtl_core.select(data, [0.0, 3.0], folds=fold).errors.tolist(), rel=1e-3)
    frames[0].drop("fold").write_csv(tmp_path / "whole.csv")
    done = run("--statistics", tmp_path / "whole.csv", *options)
    assert done.exit_code == 1
    assert "the statistics hold no folds" in done.stderr


def test_one_held_out_part_has_no_standard_error(csv: Path) -> None:
    options = ["--fusion-strength", "0,1", "--folds", "rolling", "--n-folds", "1"]
    done = run(csv, *COLUMNS, *options, "--rule", "one_standard_error")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "one_standard_error needs two or more held-out parts, and there is 1" in done.stderr
    best = run(csv, *COLUMNS, *options, "--json")
    assert best.exit_code == 0, best.stderr
    assert json.loads(best.stdout)["selection"]["standard_errors"] == [None, None]


@pytest.mark.parametrize("option", [["--folds", "random"], ["--n-folds", "5"], ["--rule", "best"]])
def test_one_strength_leaves_nothing_to_choose(csv: Path, option: list[str]) -> None:
    done = run(csv, *COLUMNS, "--fusion-strength", "1", *option)
    assert done.exit_code == 2
    said = " ".join(done.stderr.replace("│", " ").split())
    assert f"{option[0]} would choose among several strengths, and --fusion-strength 1 is one" in said


def test_a_strength_that_stands_twice_is_a_wrong_command_line(csv: Path) -> None:
    done = run(csv, *COLUMNS, "--fusion-strength", "1,2,1.0")
    assert done.exit_code == 2
    assert "must name no number twice" in " ".join(done.stderr.split())


@pytest.mark.parametrize("text", ["much", "1,", "1;2", "Auto"])
def test_a_strength_that_is_none_is_a_wrong_command_line(csv: Path, text: str) -> None:
    done = run(csv, *COLUMNS, "--fusion-strength", text)
    assert done.exit_code == 2
    assert "must be a number, numbers with commas" in " ".join(done.stderr.split())
