"""The public data sets as they are: library, command and upload understand them alike."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from typer.testing import CliRunner

from app.commands.cli import cli
from app.commands.option_names import in_command
from app.datasets.upload.option_names import in_request
from app.main import create_app
from app.settings import Settings
from ccmtl_core.inspection import Policies, inspect
from ccmtl_core.tables import ReadOptions
from tests.app.datasets.conftest import Shop
from tests.support.real_data import DATA, TA_FENG, needs

SALES = DATA / "sales_weekly" / "Sales_Transactions_Dataset_Weekly.csv"
PARTS = DATA / "r_demand_sets" / "expsmooth_carparts.csv"
HOSPITAL = DATA / "r_demand_sets" / "expsmooth_hospital.csv"
WALMART = next((DATA / "walmart_store_sales").glob("*.zip"), DATA / "walmart_store_sales" / "data.zip")


@dataclass(frozen=True)
class Shared:
    path: Path
    extent: tuple[int, int, int]
    """Rows, series and periods."""
    counts: dict[str, int]
    """Of some codes."""
    frequency: str
    columns: dict[str, Any] = field(default_factory=dict)
    policies: dict[str, str] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)


FILES = [
    Shared(SALES, (42_172, 811, 52), {"ignored_columns": 54, "leading_zeros": 2408}, "1"),
    Shared(PARTS, (130_252, 2674, 51), {"missing_cells": 6122}, "1"),
    Shared(HOSPITAL, (64_428, 767, 84), {"repeated_columns": 732}, "1"),
    Shared(
        TA_FENG,
        (817_741, 23_812, 120),
        {"duplicate_period": 422_866},
        "D",
        {"unique_id": "PRODUCT_ID", "ds": "TRANSACTION_DT", "y": "AMOUNT"},
        {"duplicates": "sum"},
    ),
    Shared(
        WALMART,
        (421_570, 3331, 143),
        {"negative_values": 1285},
        "W-FRI",
        {"unique_id": ["Store", "Dept"], "ds": "Date", "y": "Weekly_Sales"},
        written={"member": "train.csv.zip/train.csv"},
    ),
]
LARGE = {TA_FENG, WALMART}


@pytest.fixture(scope="module")
def large_shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    folder = tmp_path_factory.mktemp("shop")
    app = create_app(Settings(data_dir=folder, max_upload_bytes=1024**3))
    with TestClient(app, "http://localhost", raise_server_exceptions=False) as client:
        yield Shop(client, folder)


@pytest.mark.parametrize(
    "shared",
    [
        pytest.param(
            file,
            marks=[needs(file.path), *([pytest.mark.slow] if file.path in LARGE else [])],
            id=file.path.stem,
        )
        for file in FILES
    ],
)
def test_library_command_and_upload_understand_a_public_file_alike(large_shop: Shop, shared: Shared) -> None:
    ours = inspect(
        shared.path,
        **shared.columns,
        policies=Policies(**shared.policies),
        dialect=ReadOptions(**shared.written),
    )
    assert ours.panel is not None
    assert (ours.accounts.rows_read, ours.series, ours.periods) == shared.extent
    assert ours.traits["frequency"].value == shared.frequency
    assert {code: ours.counts[code] for code in shared.counts} == shared.counts

    ids = shared.columns.get("unique_id", [])
    named = {**shared.columns, "unique_id": ids if isinstance(ids, str) else ",".join(ids)}
    given = {name: value for name, value in {**named, **shared.policies, **shared.written}.items() if value}
    options = [f"--{name.replace('_', '-')}={value}" for name, value in given.items()]
    printed = CliRunner().invoke(cli, ["inspect", str(shared.path), "--json", *options])
    assert json.loads(printed.stdout) == json.loads(json.dumps(ours.worded(in_command).to_dict()))

    name = large_shop.series(frequency=shared.frequency, columns=shared.columns, **shared.policies)
    answer = large_shop.upload(
        name, shared.path.read_bytes(), "application/octet-stream", dry_run=True, **shared.written
    )
    uploaded = answer.json()["report"]["inspection"]
    worded = json.loads(json.dumps(ours.worded(in_request).to_dict()))
    assert {key: value for key, value in uploaded.items() if key not in ("traits", "policies")} == {
        key: value for key, value in worded.items() if key not in ("traits", "policies")
    }
    for trait, known in uploaded["traits"].items():
        assert known["value"] == ours.traits[trait].value
