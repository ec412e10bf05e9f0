"""The ids of large models are mapped from files that processes share, and found as in a dict."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from app.persistence.database import Database
from app.registry import id_files, service
from app.registry.id_files import MappedRows
from app.registry.matrix_files import MatrixFiles
from app.registry.service import StoredModel
from ccmtl_core.base.near_matches import NearMatches
from tests.support.models import add_version, trained

IDS = [
    "",
    "0",
    " 0",
    "00471",
    "471",
    "Äpfel",
    "äpfel",
    "日本/1",
    "😀",
    "x" * 512,
    *map(str, range(1, 400, 3)),
]


@pytest.fixture(scope="module")
def database_kind() -> str:
    return "sqlite"


@pytest.fixture(autouse=True)
def _all_ids_have_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(id_files, "MAPPED_FROM", 1)


def load(database: Database, folder: Path) -> StoredModel:
    with database.of("default").read() as session:
        return service.load(session, "sales", 1, MatrixFiles(folder))


def test_ids_are_found_as_in_a_dict(tmp_path: Path) -> None:
    ids = [f"{n}" for n in random.Random(0).sample(range(10**6), 5000)]
    for some in (IDS, ids, ["a"]):
        rows = id_files.mapped_rows(MatrixFiles(tmp_path), f"mv_{len(some)}", len(some), lambda s=some: s)
        assert rows is not None
        plain = {unique_id: row for row, unique_id in enumerate(some)}
        assert dict(rows) == plain
        assert rows.ids[:3] == tuple(some[:3])
        assert rows.ids[-1] == some[-1]
        for unknown in ("none", "0" * 511, "y" * 10_000, "a\x00", "\ud800", "é"):
            assert (rows.get(unknown), unknown in rows) == (None, False)
            with pytest.raises(KeyError):
                rows[unknown]


def test_a_model_with_mapped_ids_is_the_same(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_version(database, trained(np.eye(len(IDS)), IDS))
    mapped = load(database, tmp_path)
    monkeypatch.setattr(id_files, "MAPPED_FROM", 10**6)
    plain = load(database, tmp_path)
    assert isinstance(mapped.rows, MappedRows)
    assert isinstance(plain.rows, dict)
    assert list(mapped.unique_ids) == list(plain.unique_ids) == IDS
    for typed in ("0471", "äpfe", "398", "4", "x" * 511, "nothing like it"):
        assert (
            mapped.near_matches.find(typed) == plain.near_matches.find(typed) == NearMatches(IDS).find(typed)
        )
    assert mapped.attribute_table.equals(plain.attribute_table)
    names = sorted(path.name.partition("-")[0] for path in (tmp_path / "cache" / "matrices").iterdir())
    assert names == ["ids", "near"]


@pytest.mark.parametrize("damage", [b"", b"x", None])
def test_a_file_that_was_changed_is_made_anew(
    database: Database, tmp_path: Path, damage: bytes | None
) -> None:
    add_version(database, trained(np.eye(len(IDS)), IDS))
    assert load(database, tmp_path).near_matches.find("0471")
    for path in (tmp_path / "cache" / "matrices").iterdir():
        content = bytearray(path.read_bytes())
        content[100] ^= 1
        path.unlink()
        path.write_bytes(content if damage is None else damage)
    again = load(database, tmp_path)
    assert list(again.unique_ids) == IDS
    assert again.near_matches.find("0471") == ["00471", "471"]


def test_without_a_file_ids_are_in_memory(database: Database, tmp_path: Path) -> None:
    add_version(database, trained(np.eye(len(IDS)), IDS))
    (tmp_path / "cache").write_text("a file")
    assert load(database, tmp_path).rows == {unique_id: row for row, unique_id in enumerate(IDS)}
