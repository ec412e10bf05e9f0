"""Each sample file through the commands: what inspect calls usable is forecast, and messages name options."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.testing import CliRunner, Result

from app.commands import forecast_file
from app.commands.cli import NamedCommand, cli
from app.commands.file_options import COLUMNS
from app.reading.stated import OF_SHAPE, OF_TEXT, POLICIES
from ccmtl_core import DataError
from ccmtl_core.tables import ReadOptions
from tests.app.datasets.reading.test_parquet_upload import GOOD
from tests.core.inspection.test_faults import FILES
from tests.core.tables.dialects.test_dialects import REFUSED

OPTIONS = {
    name: {option for one in NamedCommand(name).imported().params for option in one.opts}
    for name in ("inspect", "forecast", "fit")
}
NAMES = "|".join(COLUMNS | POLICIES | OF_TEXT | OF_SHAPE)
OF_LIBRARY = re.compile(rf"`|\b(?:{NAMES})=['\[0-9]|\b(?:state|choose) (?:the |another )?(?:{NAMES})\b")
"""How the library names its options."""


class Sample(NamedTuple):
    content: str | bytes
    stated: Mapping[str, Any]


def stated_of(stated: Mapping[str, Any]) -> dict[str, Any]:
    """What is stated, with the options of reading beside the others."""
    dialect = {name: value for name, value in asdict(stated.get("dialect", ReadOptions())).items() if value}
    return {**{name: value for name, value in stated.items() if name != "dialect"}, **dialect}


SAMPLES = {
    name: Sample(file.text, stated_of({**file.stated, **file.policies})) for name, file in FILES.items()
}
SAMPLES |= {f"refused: {name}": Sample(content, stated) for name, (content, stated, *_) in REFUSED.items()}


def run(command: str, *arguments: object) -> Result:
    return CliRunner().invoke(cli, [command, *map(str, arguments)], env={"NO_COLOR": "1"})


def options_of(stated: Mapping[str, Any]) -> list[str]:
    return [part for name, value in stated.items() for part in (f"--{name.replace('_', '-')}", str(value))]


def told(done: Result, command: str) -> str:
    """What a command said, once it named no option but its own."""
    assert isinstance(done.exception, SystemExit | None), done.exception
    said = " ".join((done.stdout + done.stderr).replace("│", " ").split())
    assert OF_LIBRARY.findall(said) == []
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", said)) <= OPTIONS[command]
    return said


@pytest.fixture
def unfitted(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object, **__: object) -> None:
        raise DataError("the file was read")

    monkeypatch.setattr(forecast_file, "fit_forecaster", stop)


@pytest.mark.usefixtures("unfitted")
@pytest.mark.parametrize("name", SAMPLES)
def test_what_inspect_calls_usable_is_read_by_forecast(name: str, tmp_path: Path) -> None:
    content, stated = SAMPLES[name]
    path = tmp_path / "file.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    inspected = run("inspect", path, *options_of(stated))
    told(inspected, "inspect")
    done = run("forecast", path, "--horizon", 1, *options_of(stated))
    assert ("the file was read" in told(done, "forecast")) == (inspected.exit_code == 0)


@pytest.mark.parametrize("name", ["nothing", "ISO weeks"])
def test_what_inspect_calls_usable_is_forecast(name: str, tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    path.write_text(FILES[name].text)
    done = run("forecast", path, "--horizon", 1)
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("unique_id,ds,yhat\na,")


@pytest.mark.parametrize(
    "command",
    [
        "inspect {file}",
        "forecast {file} --horizon 1",
        "fit {file} --task unique_id --target y --features ds --fusion-strength 1",
    ],
)
def test_parquet_whose_bytes_end_its_decoder_is_refused(tmp_path: Path, command: str) -> None:
    path = tmp_path / "file.parquet"
    damaged = bytearray(GOOD)
    damaged[47] = 1
    path.write_bytes(damaged)
    done = run(*command.format(file=path).split())
    assert done.exit_code == 1
    assert f"{path}: the Parquet file cannot be read: its bytes were changed" in done.stderr


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        (["--fill", "forward", "--fill-start", "dataset"], "choose --fill-start series"),
        (["--ds-format", "%H:%M"], "--ds-format needs one year"),
        (["--delimiter", ";;"], "--delimiter must be one ASCII character"),
    ],
)
def test_options_that_cannot_be_meant_are_named(tmp_path: Path, stated: list[str], said: str) -> None:
    path = tmp_path / "file.csv"
    path.write_text(FILES["nothing"].text)
    done = run("inspect", path, *stated)
    assert done.exit_code == 2
    assert said in told(done, "inspect")
