"""Read and write the file of a model: one ``.npz`` without pickle, protected by a digest.

It holds four uncompressed arrays, which ``numpy.load`` reads as well: ``weights`` (T, P) ``<f8``,
``intercept`` (T,) ``<f8``, ``header`` (JSON as bytes) and ``digest``, the SHA-256 of the others. Files of the
first format, which had no intercept, are read too.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from ccmtl_core.base.exceptions import ModelFileError
from ccmtl_core.base.file_path import checked_path, whole_file
from ccmtl_core.base.types import FloatArray

FORMAT = "ccmtl-model/2"
_FORMATS = {FORMAT: {"weights": 2, "intercept": 1}, "ccmtl-model/1": {"weights": 2}}
_DAMAGED = (zipfile.BadZipFile, struct.error, ValueError, KeyError, EOFError, OSError, RuntimeError)
"""The errors that reading a damaged archive can raise."""


def write_model_file(
    path: str | Path, weights: FloatArray, intercept: FloatArray, header: Mapping[str, Any]
) -> None:
    """Write weights, intercept and header; after a failure there is no partial file."""
    write_arrays(path, FORMAT, {"weights": weights, "intercept": intercept}, header)


def read_model_file(path: str | Path) -> tuple[FloatArray, FloatArray, dict[str, Any]]:
    """Read weights (T, P), intercept (T,) and header; a damaged file is a ModelFileError."""
    arrays, header = read_arrays(path, _FORMATS)
    weights = arrays["weights"]
    return weights, arrays.get("intercept", np.zeros(len(weights))), header


def write_arrays(
    path: str | Path, name: str, arrays: Mapping[str, FloatArray], header: Mapping[str, Any]
) -> None:
    """Write arrays and a header as a file of the format of this name."""
    bodies = {key: np.ascontiguousarray(values, dtype="<f8") for key, values in arrays.items()}
    text = json.dumps({"format": name, **header}, allow_nan=False).encode("ascii")
    parts = text, _digest(text, *bodies.values())
    head, digest = (np.frombuffer(part, dtype=np.uint8) for part in parts)
    with whole_file(path) as stream:
        np.savez(stream, allow_pickle=False, **bodies, header=head, digest=digest)


def read_arrays(
    path: str | Path, formats: Mapping[str, Mapping[str, int]]
) -> tuple[dict[str, FloatArray], dict[str, Any]]:
    """Read arrays and header of a file in one of the formats, newest first, each with the axes of its arrays.

    Raises
    ------
    ModelFileError
        A damaged file, or one of another format.
    """
    content = io.BytesIO(checked_path(path).read_bytes())
    newest = next(iter(formats))
    try:
        with zipfile.ZipFile(content) as archive:
            there = {name.removesuffix(".npy") for name in archive.namelist()}
            found = next((name for name, axes in formats.items() if axes.keys() <= there), newest)
            arrays = {n: _read_array(archive, n, "<f8", ndim) for n, ndim in formats[found].items()}
            text = _read_array(archive, "header", "|u1", 1).tobytes()
            digest = _read_array(archive, "digest", "|u1", 1).tobytes()
        header = json.loads(text)
    except _DAMAGED as error:
        raise ModelFileError(f"{path} is damaged or not a model file: {error}") from error
    if digest != _digest(text, *arrays.values()):
        raise ModelFileError(f"{path} is damaged: its digest does not match")
    if not isinstance(header, dict) or header.get("format") != found:
        raise ModelFileError(f"{path} is not a model file of the format {newest!r}")
    return arrays, header


def _read_array(archive: zipfile.ZipFile, name: str, dtype: str, ndim: int) -> NDArray[Any]:
    """Read one array without trusting its header: never allocate more than the archive is large."""
    member = archive.getinfo(f"{name}.npy")
    if member.compress_type != zipfile.ZIP_STORED:
        raise ValueError(f"{name} is compressed")
    with archive.open(member) as stream:
        if npy.read_magic(stream) != (1, 0):
            raise ValueError(f"{name} has an unknown array format")
        shape, fortran_order, found = npy.read_array_header_1_0(stream)
        if found != np.dtype(dtype) or fortran_order or len(shape) != ndim:
            raise ValueError(f"{name} is not a {ndim}-dimensional {dtype} array")
        data = stream.read()
    if math.prod(shape) * found.itemsize != len(data):
        raise ValueError(f"{name} is cut off")
    return np.frombuffer(data, dtype=found).reshape(shape)


def _digest(text: bytes, *arrays: NDArray[Any]) -> bytes:
    digest = hashlib.sha256(text)
    for array in arrays:
        digest.update(repr(array.shape).encode("ascii"))
        digest.update(array.tobytes())
    return digest.digest()
