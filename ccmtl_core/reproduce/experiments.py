"""The paper's experiments: their data, settings, and the figures that the paper prints.

The figures are those of He, Alesiani & Shaker, AAAI 2019, as far as this project's notes have them; where
there is none, a table shows none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from ccmtl_core.data.synthetic import grouped_syn, scale_syn
from ccmtl_core.data.task_dataset import TaskDataset
from ccmtl_core.fitting.scoring import Score, mean_of_task_rmse, rmse_over_rows
from ccmtl_core.reproduce.files import SALES, SCHOOL, TA_FENG, PublicFile, digest, table_file
from ccmtl_core.reproduce.protocols import COMPARED, OF_SCHOOL, OF_SERIES, Protocol
from ccmtl_core.reproduce.readers import (
    Split,
    random_split,
    read_counts,
    read_sales,
    read_school,
    read_ta_feng,
)
from ccmtl_core.reproduce.rivals import RIVALS, SAME_OBJECTIVE, Rival

N_FOLDS = 5
SIZES = (50, 150, 500, 1_500, 5_000, 15_000, 50_000, 160_000)
_SCHOOL_STRENGTHS = (0.01, 0.1, 1.0, 10.0, 100.0)
_ADMM_SCHOOL = {  # strength: objective of CCMTL, of ADMM
    0.01: ("664642", "664653"),
    0.1: ("665572", "665611"),
    1.0: ("674229", "674374"),
    10.0: ("725027", "726016"),
    100.0: ("764844", "776236"),
}


def _drawn(folder: Path, setting: str) -> None:
    return None


@dataclass(frozen=True, eq=False)
class Experiment:
    """One experiment: settings (such as shares of rows for training) × repeats × methods.

    Parameters
    ----------
    title : str
        For tables and figures.
    settings : tuple of str
        Columns of the table.
    split : callable
        From folder, setting and number of the repeat to the data.
    source : callable
        From folder and setting to the file that is read; None where the data are drawn from a seed.
    columns : tuple of str
        Those of the file that are read, where the user names them.
    measure : str
        "error" after a search over each method's parameters, "objective" or "seconds" at given ones.
    score : callable
        Of held-out squared errors.
    rivals : mapping
        The methods by name.
    paper : mapping
        What the paper prints, by setting and method.
    repeats_once : tuple of str
        Settings in which nothing is random.
    protocols : mapping
        Where the settings are protocols to compare, not shares of rows: these by name.
    """

    title: str
    settings: tuple[str, ...]
    split: Callable[[Path, str, int], Split]
    source: Callable[[Path, str], Path | None] = _drawn
    columns: tuple[str, ...] = ()
    measure: str = "error"
    score: Score = rmse_over_rows
    rivals: Mapping[str, Rival] = field(default_factory=lambda: RIVALS)
    paper: Mapping[tuple[str, str], str] = field(default_factory=dict)
    repeats_once: tuple[str, ...] = ()
    protocols: Mapping[str, Protocol] = field(default_factory=dict)

    def rival(self, setting: str, method: str) -> Rival:
        """The method as it is searched in the setting."""
        rival = self.rivals[method]
        return self.protocols[setting].rival(rival) if self.protocols else rival

    def data(self, folder: Path, setting: str) -> str | None:
        """A digest of the file and columns that are read; None where the data are drawn from a seed."""
        source = self.source(folder, setting)
        return None if source is None else digest(source, self.columns)

    @property
    def other_score(self) -> Score:
        """The score that is reported besides."""
        return mean_of_task_rmse if self.score is rmse_over_rows else rmse_over_rows

    def fixed(self, setting: str) -> dict[str, float]:
        """Parameters that the setting gives, where none are searched."""
        return {"fusion_strength": float(setting.rpartition(" ")[2])} if self.measure == "objective" else {}


def _share(setting: str) -> float:
    return float(setting.rstrip("% ")) / 100.0


def _source(file: PublicFile) -> Callable[[Path, str], Path]:
    return lambda folder, _: file.find(folder)


def _of_file(read: Callable[[Path], TaskDataset]) -> Callable[[Path, str, int], Split]:
    known: dict[Path, TaskDataset] = {}

    def split(folder: Path, setting: str, repeat: int) -> Split:
        if folder not in known:
            known[folder] = read(folder)
        return random_split(known[folder], _share(setting), N_FOLDS, np.random.default_rng(repeat))

    return split


def _of_protocols(
    title: str,
    source: Callable[[Path, str], Path | None],
    read: Callable[[Path, int], TaskDataset],
    share: float,
    score: Score,
    protocols: Mapping[str, Protocol],
    paper: Mapping[str, str],
) -> Experiment:
    """Compare protocols on a share of the rows of a file; the paper's figures by method."""
    known: dict[tuple[Path, int], TaskDataset] = {}

    def split(folder: Path, setting: str, repeat: int) -> Split:
        protocol = protocols[setting]
        key = folder, protocol.n_lags
        if key not in known:
            known.clear()
            known[key] = read(*key)
        return protocol.split(known[key], share, N_FOLDS, np.random.default_rng(repeat))

    return Experiment(
        title, tuple(protocols), split, source, score=score, rivals=COMPARED, protocols=protocols,
        paper={("", method): value for method, value in paper.items()},
        repeats_once=tuple(name for name, protocol in protocols.items() if protocol.first_rows_train),
    )  # fmt: skip


def _syn(folder: Path, setting: str, repeat: int) -> Split:
    rng = np.random.default_rng(repeat)
    return random_split(grouped_syn(rng).dataset, _share(setting), N_FOLDS, rng)


def _scale_syn(folder: Path, setting: str, repeat: int) -> Split:
    rng = np.random.default_rng(repeat)
    tasks = scale_syn(rng, int(setting.replace(",", "")), tasks_per_cluster=10)
    return random_split(tasks.dataset, 1.0, 1, rng)


def _source_of_same_objective(folder: Path, setting: str) -> Path | None:
    return SCHOOL.find(folder) if setting.startswith("School") else None


def _same_objective(folder: Path, setting: str, repeat: int) -> Split:
    rng = np.random.default_rng(repeat)
    data = read_school(folder) if setting.startswith("School") else grouped_syn(rng).dataset
    return random_split(data, 1.0, 1, rng)


_SHARES = ("20 %", "30 %", "40 %")
_SALES = {"STL": "2.861", "CCMTL": "0.976 of STL"}
_TA_FENG = {"STL": "0.791", "CCMTL": "0.970 of STL"}
EXPERIMENTS: dict[str, Experiment] = {
    "syn": Experiment("Syn", _SHARES, _syn),
    "school": Experiment(
        "School",
        _SHARES,
        _of_file(read_school),
        _source(SCHOOL),
        paper={(s, "CCMTL"): v for s, v in zip(_SHARES, ("10.170", "10.036", "10.020"), strict=True)},
    ),
    "sales": Experiment(
        "Sales",
        ("50 %",),
        _of_file(read_sales),
        _source(SALES),
        score=mean_of_task_rmse,
        paper={("50 %", method): value for method, value in _SALES.items()},
    ),
    "ta-feng": Experiment(
        "Ta-Feng",
        ("50 %",),
        _of_file(read_ta_feng),
        _source(TA_FENG),
        score=mean_of_task_rmse,
        paper={("50 %", method): value for method, value in _TA_FENG.items()},
    ),
    "school-protocols": _of_protocols(
        "School: protocols",
        _source(SCHOOL),
        lambda folder, _: read_school(folder),
        0.3,
        rmse_over_rows,
        OF_SCHOOL,
        {"CCMTL": "10.036"},
    ),
    "sales-protocols": _of_protocols(
        "Sales: protocols", _source(SALES), read_sales, 0.5, mean_of_task_rmse, OF_SERIES, _SALES
    ),
    "ta-feng-protocols": _of_protocols(
        "Ta-Feng: protocols", _source(TA_FENG), read_ta_feng, 0.5, mean_of_task_rmse, OF_SERIES, _TA_FENG
    ),
    "scalesyn": Experiment("ScaleSyn", tuple(f"{size:,}" for size in SIZES), _scale_syn, measure="seconds"),
    "admm": Experiment(
        "CCMTL and ADMM on one objective",
        tuple(f"{name} {strength:g}" for name in ("School", "Syn") for strength in _SCHOOL_STRENGTHS),
        _same_objective,
        _source_of_same_objective,
        measure="objective",
        rivals=SAME_OBJECTIVE,
        paper={
            (f"School {strength:g}", method): value
            for strength, values in _ADMM_SCHOOL.items()
            for method, value in zip(SAME_OBJECTIVE, values, strict=True)
        },
        repeats_once=tuple(f"School {strength:g}" for strength in _SCHOOL_STRENGTHS),
    ),
}


def table_experiment(task: str, time: str, value: str) -> Experiment:
    """Return the experiment of Sales on a long CSV table of the user's, such as boardings of bus stops."""
    read = partial(read_counts, task=task, time=time, value=value)
    return Experiment(
        "Table", ("50 %",), _of_file(read), lambda path, _: table_file(path), (task, time, value),
        score=mean_of_task_rmse,
    )  # fmt: skip
