"""Model files are whole or absent, bring back every bit, notice damage, and cannot run code."""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ccmtl_core import CCMTLModel, ModelFileError, ParameterError
from ccmtl_core.model.model_file import write_model_file

IDS = ("0471", "471", "a/b", "  ", "北京", "\ud800", "line\nbreak")


@pytest.fixture
def model() -> CCMTLModel:
    weights = np.random.default_rng(0).standard_normal((len(IDS), 2))
    return CCMTLModel(weights, IDS, ("f0", "f1"), {"λ": 0.5, "deep": [1, None]})


@given(data=st.data())
def test_a_file_brings_back_every_bit(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    names = st.lists(st.text(min_size=1), min_size=1, max_size=5, unique=True)
    ids, features = data.draw(names), data.draw(names)
    shape = (len(ids), len(features))
    weights = data.draw(hnp.arrays(np.float64, shape, elements=st.floats(-1e300, 1e300)))
    intercept = data.draw(hnp.arrays(np.float64, len(ids), elements=st.floats(-1e300, 1e300)))
    before = CCMTLModel(weights, tuple(ids), tuple(features), {"note": data.draw(st.text())}, intercept)
    path = tmp_path_factory.mktemp("model") / "m.npz"
    before.save(path)
    after = CCMTLModel.load(path)
    assert after.weights.tobytes() == before.weights.tobytes()
    assert after.intercept.tobytes() == before.intercept.tobytes()
    assert (after.task_ids, after.feature_names) == (before.task_ids, before.feature_names)
    assert after.metadata == before.metadata


def test_a_file_opens_in_numpy_without_pickle(model: CCMTLModel, tmp_path: Path) -> None:
    model.save(tmp_path / "m.npz")
    with np.load(tmp_path / "m.npz", allow_pickle=False) as archive:
        assert np.array_equal(archive["weights"], model.weights)
        assert json.loads(archive["header"].tobytes())["task_ids"] == list(IDS)


def test_the_same_model_makes_the_same_arrays_and_ordinary_permissions(
    model: CCMTLModel, tmp_path: Path
) -> None:
    mask = os.umask(0o027)
    try:
        model.save(str(tmp_path / "m.npz"))
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "m.npz").stat().st_mode) == 0o640
    assert [entry.name for entry in tmp_path.iterdir()] == ["m.npz"]


def test_a_save_that_fails_leaves_the_old_file_and_no_other(
    model: CCMTLModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.npz"
    model.save(path)
    before = path.read_bytes()

    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space left"):
        CCMTLModel([[1.0]], ("a",), ("x",)).save(path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["m.npz"]


def test_every_flipped_byte_of_the_content_is_noticed(model: CCMTLModel, tmp_path: Path) -> None:
    path = tmp_path / "m.npz"
    model.save(path)
    whole = path.read_bytes()
    for position in range(len(whole)):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 0x10]) + whole[position + 1 :])
        try:
            loaded = CCMTLModel.load(path)
        except ModelFileError:
            continue
        assert loaded.weights.tobytes() == model.weights.tobytes()
        assert loaded.task_ids == model.task_ids


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_file_cut_short_is_refused(model: CCMTLModel, tmp_path: Path, share: float) -> None:
    path = tmp_path / "m.npz"
    model.save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(ModelFileError, match="damaged or not a model file"):
        CCMTLModel.load(path)


def test_a_missing_file_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        CCMTLModel.load(tmp_path / "none.npz")


class _Payload:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, ("pickle-ran",)


def _archive(path: Path, members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> None:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def _npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=True)
    return stream.getvalue()


def test_a_pickle_inside_is_never_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    evil = np.array([[_Payload()]], dtype=object)
    _archive(tmp_path / "m.npz", {"weights.npy": _npy(evil), "header.npy": pickle.dumps(_Payload())})
    with pytest.raises(ModelFileError):
        CCMTLModel.load(tmp_path / "m.npz")
    assert not (tmp_path / "pickle-ran").exists()


def test_a_header_that_claims_a_huge_array_is_refused_without_the_memory(tmp_path: Path) -> None:
    stream = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": (10**9, 100)}
    np.lib.format.write_array_header_1_0(stream, header)
    _archive(tmp_path / "m.npz", {"weights.npy": stream.getvalue() + bytes(8)})
    with pytest.raises(ModelFileError, match="cut off"):
        CCMTLModel.load(tmp_path / "m.npz")


def test_compressed_members_are_refused(tmp_path: Path) -> None:
    _archive(tmp_path / "m.npz", {"weights.npy": _npy(np.zeros((1000, 1000)))}, zipfile.ZIP_DEFLATED)
    with pytest.raises(ModelFileError, match="compressed"):
        CCMTLModel.load(tmp_path / "m.npz")


@pytest.mark.parametrize(
    "array", [np.zeros((2, 2), dtype=np.float32), np.zeros(3), np.zeros((2, 2), order="F"), np.zeros(0)]
)
def test_weights_of_another_kind_are_refused(tmp_path: Path, array: np.ndarray) -> None:
    _archive(tmp_path / "m.npz", {"weights.npy": _npy(array)})
    with pytest.raises(ModelFileError, match="weights"):
        CCMTLModel.load(tmp_path / "m.npz")


@pytest.mark.parametrize(
    "header",
    [
        {"format": "ccmtl-model/3"},
        {"task_ids": 5},
        {"feature_names": ["f0"]},
        {"task_ids": "abcdefg"},
        {"feature_names": "ab"},
    ],
)
def test_a_header_that_does_not_fit_is_refused(
    model: CCMTLModel, tmp_path: Path, header: dict[str, object]
) -> None:
    parts: dict[str, object] = {"task_ids": IDS, "feature_names": model.feature_names, "metadata": {}}
    write_model_file(tmp_path / "m.npz", model.weights, model.intercept, {**parts, **header})
    with pytest.raises(ModelFileError, match=r"format|whole model"):
        CCMTLModel.load(tmp_path / "m.npz")


def test_a_file_from_before_there_was_an_intercept_is_read(model: CCMTLModel, tmp_path: Path) -> None:
    header = {"task_ids": IDS, "feature_names": model.feature_names, "metadata": {}}
    text = json.dumps({"format": "ccmtl-model/1", **header}).encode()
    digest = hashlib.sha256(text)
    digest.update(repr(model.weights.shape).encode())
    digest.update(model.weights.tobytes())
    path = tmp_path / "old.npz"
    arrays = {"weights": model.weights, "header": np.frombuffer(text, np.uint8)}
    np.savez(path, allow_pickle=False, **arrays, digest=np.frombuffer(digest.digest(), np.uint8))
    old = CCMTLModel.load(path)
    assert old.weights.tobytes() == model.weights.tobytes()
    assert old.intercept.tolist() == [0.0] * len(IDS)
    np.savez(path, allow_pickle=False, **arrays, digest=np.zeros(32, np.uint8))
    with pytest.raises(ModelFileError, match="digest"):
        CCMTLModel.load(path)


def test_a_file_that_lost_its_intercept_is_refused(model: CCMTLModel, tmp_path: Path) -> None:
    model.save(tmp_path / "m.npz")
    with np.load(tmp_path / "m.npz") as archive:
        arrays = {name: archive[name] for name in archive.files if name != "intercept"}
    np.savez(tmp_path / "less.npz", allow_pickle=False, **arrays)
    with pytest.raises(ModelFileError, match="digest"):
        CCMTLModel.load(tmp_path / "less.npz")


def test_a_link_is_followed_to_the_file_that_it_names(model: CCMTLModel, tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    target, link = tmp_path / "store" / "v1.npz", tmp_path / "current.npz"
    link.symlink_to(Path("store") / "v1.npz")
    for weights in ([[1.0]], [[2.0]]):  # first the link leads nowhere yet
        CCMTLModel(weights, ("a",), ("x",)).save(link)
        assert link.is_symlink()
        assert CCMTLModel.load(target).weights.tolist() == weights
    assert [entry.name for entry in target.parent.iterdir()] == ["v1.npz"]


def test_what_is_no_file_is_refused_and_stays(model: CCMTLModel, tmp_path: Path) -> None:
    pipe, link = tmp_path / "pipe", tmp_path / "link.npz"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for path in (pipe, link):
        with pytest.raises(ParameterError, match=f"{path} is a pipe, a socket or a device"):
            model.save(path)
    assert stat.S_ISFIFO(pipe.lstat().st_mode)
    assert link.is_symlink()
    with pytest.raises(ParameterError, match=f"{tmp_path} is a folder"):
        model.save(tmp_path)
    with pytest.raises(ParameterError, match=r"the folder of .*none/m\.npz does not exist"):
        model.save(tmp_path / "none" / "m.npz")
    assert {entry.name for entry in tmp_path.iterdir()} == {"pipe", "link.npz"}


@pytest.mark.parametrize("call", [CCMTLModel([[1.0]], ("a",), ("x",)).save, CCMTLModel.load])
@pytest.mark.parametrize("path", ["", "a\0b", None, 5, b"m.npz"])
def test_a_path_that_names_no_file_is_refused(call: Callable[[Any], object], path: object) -> None:
    with pytest.raises(ParameterError, match="a path must "):
        call(path)


def test_an_error_of_the_system_names_the_path_that_was_given(
    model: CCMTLModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(16, "Device or resource busy", "a temporary name", None, "another")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="busy") as caught:
        model.save(tmp_path / "m.npz")
    assert str(caught.value) == f"[Errno 16] Device or resource busy: '{tmp_path / 'm.npz'}'"
    long = tmp_path / ("n" * 251 + ".npz")
    monkeypatch.undo()
    model.save(long)
    assert long.exists()
    with pytest.raises(OSError, match="File name too long") as caught:
        model.save(tmp_path / ("n" * 300))
    assert caught.value.filename == str(tmp_path / ("n" * 300))
