"""Experiments run cell by cell: searched, scored, stopped in time, and resumed after a kill."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from numba.core import event

from ccmtl_core import DataError
from ccmtl_core.data.synthetic import grouped_syn
from ccmtl_core.fitting.scoring import mean_of_task_rmse, rmse_over_rows
from ccmtl_core.reproduce import EXPERIMENTS, Cell, Experiment, Report, draw, run_cells, table_experiment
from ccmtl_core.reproduce.cells import Stopped, read_cells, squared_errors, within
from ccmtl_core.reproduce.readers import Split, random_split
from ccmtl_core.reproduce.rivals import RIVALS


def small(folder: Path, setting: str, repeat: int) -> Split:
    rng = np.random.default_rng(repeat)
    tasks = grouped_syn(rng, n_groups=2, tasks_per_group=4, n_samples=40)
    return random_split(tasks.dataset, float(setting.rstrip(" %")) / 100, 5, rng)


SMALL = replace(EXPERIMENTS["syn"], split=small)


def run(
    file: Path,
    experiment: Experiment = SMALL,
    limit: float = 60.0,
    methods: tuple[str, ...] = ("STL", "ITL", "CCMTL"),
    settings: tuple[str, ...] = ("40 %",),
    repeats: int = 2,
) -> list[Cell]:
    return run_cells(
        experiment, file, folder=file.parent, methods=methods, settings=settings, repeats=repeats,
        quick=True, limit=limit, on_cell=lambda done, total, cell: None,
    )  # fmt: skip


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Cell]]:
    file = tmp_path_factory.mktemp("cells") / "syn.jsonl"
    return file, run(file)


def test_a_cell_holds_the_error_of_the_chosen_parameters_on_held_out_rows(
    done: tuple[Path, list[Cell]],
) -> None:
    for cell in done[1]:
        split = small(Path(), cell.setting, cell.repeat)
        model = RIVALS[cell.method].model.set_params(**cell.parameters).fit_statistics(split.training)
        expected = rmse_over_rows(squared_errors(model, split.held_out), split.held_out.n_samples)
        assert cell.value == pytest.approx(expected, rel=1e-6)
        by_task = mean_of_task_rmse(squared_errors(model, split.held_out), split.held_out.n_samples)
        assert cell.other_value == pytest.approx(by_task, rel=1e-6)
        assert cell.converged
        assert cell.seconds > 0
        assert cell.search_seconds > 0


def test_a_run_goes_on_where_it_was_killed(done: tuple[Path, list[Cell]], tmp_path: Path) -> None:
    lines = done[0].read_text().splitlines(keepends=True)
    file = tmp_path / "cut.jsonl"
    file.write_text("".join(lines[:3]) + lines[3][:20])  # killed while it wrote the fourth
    cells = run(file)
    assert [cell.value for cell in cells] == [cell.value for cell in done[1]]
    assert cells[:3] == done[1][:3]
    assert file.read_text().splitlines()[:3] == [line.strip() for line in lines[:3]]
    assert len(read_cells(file)) == len(lines)
    kept = file.read_bytes()
    run(file)
    assert file.read_bytes() == kept


@pytest.mark.parametrize(
    "change",
    [{"value": "abc"}, {"other_value": []}, {"seconds": None}, {"parameters": None},
     {"parameters": {"ridge": "x"}}, {"setting": ["20 %"]}, {"repeat": "0"}, {"converged": 0}, {"data": 1}],
)  # fmt: skip
def test_a_line_that_was_spoilt_by_hand_is_as_one_cut_off(change: dict[str, object], tmp_path: Path) -> None:
    whole = cell("STL", 0, 1.0)
    spoilt = json.dumps(asdict(whole) | change).encode()
    lines = [spoilt, b'{"setting": "\xff"}', b"7", b"", json.dumps(asdict(whole)).encode()]
    (tmp_path / "edited.jsonl").write_bytes(b"\n".join(lines))
    assert read_cells(tmp_path / "edited.jsonl") == [whole]


def test_a_method_past_its_limit_is_stopped_told_and_not_tried_again(tmp_path: Path) -> None:
    cells = run(tmp_path / "a.jsonl", methods=("STL", "TriFactor"), limit=0.6, repeats=2)
    assert [cell.value is None for cell in cells] == [False, True, False, True]
    report = Report(SMALL, cells)
    assert "| TriFactor | stopped |" in report.markdown()
    assert report.to_dict()["rows"][1]["stopped"]
    assert report.best("40 %") == {"STL"}


def test_a_limit_ends_a_block_that_computes() -> None:
    with within(0.05), pytest.raises(Stopped):
        spend(60.0)
    with within(60.0):
        pass


def test_the_clock_stands_still_while_kernels_are_compiled() -> None:
    with within(0.2) as seconds_so_far:
        with event.trigger_event("numba:compile"):
            spend(0.3)
        assert seconds_so_far() < 0.1
        with pytest.raises(Stopped):
            spend(60.0)
        assert 0.15 < seconds_so_far() < 0.3


def spend(seconds: float) -> None:
    began = time.process_time()
    while time.process_time() - began < seconds:
        pass


def test_data_too_small_for_its_folds_are_refused_with_what_to_do(tmp_path: Path) -> None:
    table = tmp_path / "few.csv"
    table.write_text("stop,day,boardings\n" + "".join(f"a,{day},1\n" for day in range(10, 24)))
    experiment = table_experiment("stop", "day", "boardings")
    with pytest.raises(DataError, match=r"Table, 50 %: of 4 rows none is left for fold . of 5, .* more"):
        run_cells(
            experiment, tmp_path / "few.jsonl", folder=table, methods=("STL",), settings=("50 %",), repeats=1,
            quick=True, limit=60.0, on_cell=lambda done, total, cell: None,
        )  # fmt: skip


def scaling(folder: Path, setting: str, repeat: int) -> Split:
    tasks = grouped_syn(np.random.default_rng(0), tasks_per_group=int(setting), n_samples=20)
    return random_split(tasks.dataset, 1.0, 1, np.random.default_rng(0))


def test_times_of_growing_sets_have_slopes_and_a_stopped_method_ends() -> None:
    experiment = replace(EXPERIMENTS["scalesyn"], settings=("100", "1,000", "10,000"))
    times = {"STL": (1.0, 10.0, 100.0), "CCMTL": (2.0, None, None)}
    cells = [
        Cell(setting, 0, method, value, value or 9.0, 0.0, {}, True)
        for i, setting in enumerate(experiment.settings)
        for method, values in times.items()
        for value in [values[i]]
    ]
    report = Report(experiment, cells)
    assert report.slope("STL") == pytest.approx(1.0)
    assert report.slope("CCMTL") is None
    assert "| CCMTL | 2 | stopped | stopped | – |" in report.markdown()


def test_a_method_that_was_stopped_on_a_size_is_not_tried_on_the_next(tmp_path: Path) -> None:
    experiment = replace(EXPERIMENTS["scalesyn"], split=scaling, settings=("2", "4"))
    settings = experiment.settings
    cells = run(tmp_path / "s.jsonl", experiment, settings=settings, methods=("STL",), repeats=1)
    assert all(cell.value is not None and not cell.parameters for cell in cells)
    (tmp_path / "t.jsonl").write_text(
        '{"setting": "2", "repeat": 0, "method": "STL", "value": null, "seconds": 1, "search_seconds": 0, '
        '"parameters": {}, "converged": false}\n'
    )
    cells = run(tmp_path / "t.jsonl", experiment, 1.0, settings=settings, methods=("STL",), repeats=1)
    assert [cell.value for cell in cells] == [None, None]


def test_what_a_lower_limit_stopped_is_run_again(tmp_path: Path) -> None:
    file, experiment = (
        tmp_path / "s.jsonl",
        replace(EXPERIMENTS["scalesyn"], split=scaling, settings=("2", "4")),
    )
    file.write_text("".join(json.dumps(asdict(stopped(s, 1.0))) + "\n" for s in experiment.settings))

    def values(limit: float) -> list[float | None]:
        cells = run(file, experiment, limit, settings=experiment.settings, methods=("STL",), repeats=1)
        return [cell.value for cell in cells]

    assert values(1.0) == [None, None]
    assert None not in values(60.0)
    assert None not in values(1.0)


def stopped(setting: str, limit: float) -> Cell:
    return Cell(setting, 0, "STL", None, limit, 0.0, {}, False)


def objective_split(folder: Path, setting: str, repeat: int) -> Split:
    return scaling(folder, "3", repeat)


def test_two_solvers_of_one_objective_agree(tmp_path: Path) -> None:
    experiment = replace(EXPERIMENTS["admm"], split=objective_split, source=SMALL.source)
    ours, admm = run(tmp_path / "a.jsonl", experiment, settings=("School 1",), methods=("CCMTL", "ADMM"))
    assert ours.parameters == {"fusion_strength": 1.0}
    assert ours.value == pytest.approx(admm.value, rel=1e-6)
    text = Report(experiment, [ours, admm]).markdown()
    assert "; paper 674229" in text
    assert "; paper 674374" in text


def cell(method: str, repeat: int, value: float) -> Cell:
    return Cell("20 %", repeat, method, value, 1.0, 2.0, {}, True)


def test_bold_are_the_best_and_those_that_a_paired_test_does_not_tell_apart() -> None:
    errors = {
        "STL": [3.0, 3.1, 3.2],
        "ITL": [1.01, 2.0, 2.99],
        "CCMTL": [1.0, 2.0, 3.0],
        "L21": [1.1, 2.11, 3.1],
    }
    cells = [cell(name, r, value) for name, values in errors.items() for r, value in enumerate(values)]
    report = Report(SMALL, cells)
    assert report.best("20 %") == {"CCMTL", "ITL", "STL"}  # STL differs by much, but not by as much each time
    row = report.to_dict()["rows"][2]
    assert (row["method"], row["mean"], row["in_best_group"]) == ("CCMTL", 2.0, True)
    assert row["standard_error"] == pytest.approx(1 / np.sqrt(3))
    assert "| CCMTL | **2.000** (0.577) |" in report.markdown()
    assert "| L21 | 2.103 (0.577) |" in report.markdown()


@pytest.mark.parametrize("measure", ["error", "seconds", "objective"])
def test_each_kind_of_figure_is_drawn(measure: str, tmp_path: Path) -> None:
    settings = ("100", "1,000")
    experiment = replace(SMALL, measure=measure, settings=settings)
    cells = [
        Cell(s, r, m, 1.0 + r, 0.1, 0.0, {}, True) for s in settings for r in (0, 1) for m in ("STL", "ITL")
    ]
    cells.append(Cell("100", 0, "L21", None, 9.0, 0.0, {}, False))
    draw(Report(experiment, cells), tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_a_table_of_stops_is_an_experiment(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [f"{stop},{hour:03},{rng.poisson(5 + stop)}" for stop in range(4) for hour in range(40)]
    (tmp_path / "stops.csv").write_text("\n".join(["stop,hour,n", *rows]))
    split = table_experiment("stop", "hour", "n").split(tmp_path / "stops.csv", "50 %", 0)
    assert split.training.n_samples.tolist() == [15] * 4


def test_cells_belong_to_the_file_and_the_columns_that_were_read(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [f"{stop},{hour},{rng.poisson(5)},{rng.poisson(9)}" for stop in range(4) for hour in range(40)]
    a, b = tmp_path / "a.csv", tmp_path / "b.csv"
    a.write_text("\n".join(["stop,hour,n,m", *rows]))
    b.write_text("\n".join(["stop,hour,n,m", *rows[:-20]]))

    def value(path: Path, column: str) -> float | None:
        (cell,) = run_cells(
            table_experiment("stop", "hour", column), tmp_path / "table.jsonl", folder=path, methods=("STL",),
            settings=("50 %",), repeats=1, quick=True, limit=60.0, on_cell=lambda done, total, cell: None,
        )  # fmt: skip
        return cell.value

    first = value(a, "n")
    assert len({first, value(b, "n"), value(a, "m")}) == 3
    assert value(a, "n") == first
    assert len(read_cells(tmp_path / "table.jsonl")) == 3
    a.unlink()
    with pytest.raises(DataError, match=r"there is no file .*a\.csv"):
        value(a, "n")


def test_grids_are_the_papers_range() -> None:
    values = [parameters["fusion_strength"] for parameters in RIVALS["CCMTL"].grid(quick=False)]
    assert values == [10 ** (half / 2) for half in range(10, -11, -1)]
    assert [len(RIVALS["RMTL"].grid(quick=quick)) for quick in (False, True)] == [36, 9]
    assert RIVALS["RMTL"].grid(quick=False)[-1] == {"rank_strength": 1e-5, "outlier_strength": 1e-5}
