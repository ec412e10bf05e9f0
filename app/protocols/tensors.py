"""Read and write tensors of the Open Inference Protocol, as JSON or as binary data behind it."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike

from app.http.errors import MAX_ERRORS, BadRequest, Fault, InvalidContent
from app.http.request_body import explain, parse_json_object
from app.http.struct_forms import form_of
from app.predictions.service import Matrix
from app.predictions.tables import UNIQUE_ID
from app.registry.service import StoredModel
from ccmtl_core.base.display import counted

FEATURES = "features"
_DTYPES = {
    **{f"FP{bits}": f"<f{bits // 8}" for bits in (16, 32, 64)},
    **{f"INT{bits}": f"<i{bits // 8}" for bits in (8, 16, 32, 64)},
    **{f"UINT{bits}": f"<u{bits // 8}" for bits in (8, 16, 32, 64)},
    "BOOL": "?",
}
_MOST_DIMENSIONS = 8
_MOST_TOLD = 5


class InputTensor(Struct):
    """One input: its elements in ``data``, or ``parameters.binary_data_size`` bytes of binary data."""

    name: str
    shape: list[int]
    datatype: str
    parameters: dict[str, Any] = {}
    data: list[Any] | None = None


class RequestedOutput(Struct):
    """An output that is asked for; ``parameters.binary_data`` asks for binary data."""

    name: str
    parameters: dict[str, Any] = {}


class InferRequest(Struct):
    """Inputs, and which outputs are wanted in which form."""

    inputs: list[InputTensor]
    outputs: list[RequestedOutput] = []
    id: str = ""
    parameters: dict[str, Any] = {}


class OutputTensor(Struct, omit_defaults=True):
    """One output."""

    name: str
    datatype: str
    shape: list[int]
    data: list[float | str | None] | None = None
    parameters: dict[str, Any] = {}


class InferResponse(Struct, omit_defaults=True):
    """The outputs, and the version that they are of."""

    model_name: str
    model_version: str
    outputs: list[OutputTensor]
    id: str = ""


_decode = msgspec.json.Decoder(InferRequest).decode


def read_request(body: bytes, json_length: int | None) -> tuple[InferRequest, memoryview]:
    """Return the request and the binary data after it; ``json_length`` tells where that begins."""
    if json_length is not None and not 0 <= json_length <= len(body):
        raise BadRequest("malformed_tensors", "Inference-Header-Content-Length is longer than the body.")
    head = body[:json_length]
    try:
        request = _decode(head)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise explain(head, form_of(InferRequest), str(error)) from None
    parse_json_object(head)  # refuses a key that stands twice
    return request, memoryview(body)[len(head) :]


def table_of(request: InferRequest, binary: memoryview, model: StoredModel) -> tuple[list[str], Matrix]:
    """Return the ids (n,) and the features (n, P): one tensor, or one for each feature by its name."""
    found: dict[str, tuple[int, InputTensor, Any]] = {}
    for position, tensor in enumerate(request.inputs):
        size = tensor.parameters.get("binary_data_size")
        if size is not None and (type(size) is not int or not 0 <= size <= len(binary)):
            raise _wrong(position, "parameters.binary_data_size", "is more than the binary data that came")
        if tensor.name in found:
            raise _wrong(position, "name", "stands twice")
        data = tensor.data if size is None else binary[:size]
        binary = binary[size or 0 :]
        found[tensor.name] = position, tensor, _values(position, tensor, data)
    if len(binary):
        raise BadRequest("malformed_tensors", f"{len(binary)} bytes of binary data belong to no input.")
    names = model.feature_names
    has_usual = found.keys() <= {UNIQUE_ID, FEATURES} or (len(found) == 2 and FEATURES in found)
    by_name = names == (FEATURES,) or not has_usual
    places = {name: position for name, (position, *_) in found.items()}
    _refuse_other_names(places, names if by_name else [FEATURES])
    position, _, ids = found[UNIQUE_ID]
    if not isinstance(ids, list):
        raise _wrong(position, "datatype", "must be BYTES: ids are text")
    width = 1 if by_name else len(names)
    columns = []
    for name in names if by_name else [FEATURES]:
        position, tensor, values = found[name]
        if isinstance(values, list):
            raise _wrong(position, "datatype", f"must be a number, one of {', '.join(_DTYPES)}")
        if len(values) != len(ids) * width or (width > 1 and tensor.shape[1:] != [width]):
            raise _wrong(position, "shape", f"must be [{len(ids)}, {width}] for {len(ids)} ids")
        columns.append(values.reshape(len(ids), width))
    return ids, np.concatenate(columns, axis=1)


def _refuse_other_names(places: Mapping[str, int], names: Sequence[str]) -> None:
    """Refuse inputs that are not the ids and ``names``; ``places`` tells where each stands."""
    wanted = f"the inputs are {UNIQUE_ID} and {FEATURES}, or each feature by its name"
    expected = dict.fromkeys((UNIQUE_ID, *names))
    told = [
        (f"there is no input {name[:100]!r}", f".{places[name]}.name")
        for name in places
        if name not in expected
    ]
    told += [(f"the input {name!r} is missing", "") for name in expected if name not in places]
    if told:
        more = f" and {len(told) - _MOST_TOLD} more" if len(told) > _MOST_TOLD else ""
        what = ", ".join(message for message, _ in told[:_MOST_TOLD])
        raise InvalidContent(
            "wrong_tensors",
            f"The inputs have {counted(len(told), 'fault')}: {what}{more}; {wanted}.",
            errors=[
                Fault(message=message, location=f"body.inputs{place}") for message, place in told[:MAX_ERRORS]
            ],
            error_count=len(told),
        )


def response(
    request: InferRequest, model: StoredModel, yhat: Matrix, status: Sequence[str]
) -> tuple[bytes, int | None]:
    """Return the body, and the length of its JSON if binary data follows."""
    available = {"yhat": ("FP64", yhat), "status": ("BYTES", status)}
    default = request.parameters.get("binary_data_output") is True
    wanted = request.outputs or [RequestedOutput(name) for name in available]
    outputs, binary = [], []
    for position, output in enumerate(wanted):
        if output.name not in available:
            fault = Fault(message="there are yhat and status", location=f"body.outputs.{position}.name")
            raise InvalidContent(
                "wrong_tensors", f"There is no output {output.name[:100]!r}.", errors=[fault]
            )
        datatype, values = available[output.name]
        tensor = OutputTensor(output.name, datatype, [len(yhat)])
        if output.parameters.get("binary_data", default) is True:
            binary.append(yhat.astype("<f8").tobytes() if values is yhat else _packed(status))
            tensor.parameters = {"binary_data_size": len(binary[-1])}
        elif values is yhat:
            tensor.data = [None if math.isnan(value) else value for value in yhat.tolist()]
        else:
            tensor.data = list(status)
        outputs.append(tensor)
    head = msgspec.json.encode(InferResponse(model.name, str(model.version), outputs, request.id))
    return b"".join([head, *binary]), len(head) if binary else None


def _values(position: int, tensor: InputTensor, data: Any) -> Any:
    """Return the elements, row by row: a list of texts, or an array of float64."""
    shape = tensor.shape
    if not 0 < len(shape) <= _MOST_DIMENSIONS or min(shape) < 1:
        raise _wrong(position, "shape", f"must be 1 to {_MOST_DIMENSIONS} whole numbers from 1 on")
    if data is None:
        raise _wrong(position, "data", "is missing")
    dtype = _DTYPES.get(tensor.datatype)
    if dtype is None and tensor.datatype != "BYTES":
        raise _wrong(position, "datatype", f"must be BYTES or one of {', '.join(_DTYPES)}")
    try:
        if isinstance(data, memoryview):
            values = _unpacked(data) if dtype is None else _read(data, dtype, tensor.datatype)
        else:
            flat = _flat(data, len(shape))
            values = (
                msgspec.convert(flat, list[str]) if dtype is None else _held(flat, dtype, tensor.datatype)
            )
    except (ValueError, struct.error) as error:
        raise _wrong(position, "data", f"cannot be read: {error}") from None
    if len(values) != math.prod(shape):
        raise _wrong(
            position, "data", f"has {len(values)} elements; the shape {shape} needs {math.prod(shape)}"
        )
    return values


def _read(data: memoryview, dtype: str, datatype: str) -> Matrix:
    """Return binary numbers as float64."""
    if dtype == "?":
        _refuse_first(np.frombuffer(data, np.uint8) > 1, datatype, "the bytes 0 and 1")
    return np.frombuffer(data, dtype).astype(np.float64)


def _held(data: list[Any], dtype: str, datatype: str) -> Matrix:
    """Return the numbers of a flat list as float64, if the datatype holds each of them."""
    if dtype == "?":
        return np.array(msgspec.convert(data, list[bool]), dtype=np.float64)
    if dtype.startswith("<f"):
        values = np.array(msgspec.convert(data, list[float]), dtype=np.float64)
        with np.errstate(over="ignore"):
            are_too_large = np.isinf(values.astype(dtype))
        most = float(np.finfo(dtype).max)
        _refuse_first(are_too_large, datatype, f"numbers from {-most:g} to {most:g}")
        return values
    numbers = msgspec.convert(data, list[int | float])
    bounds = np.iinfo(dtype)
    least, most = int(bounds.min), int(bounds.max)  # compared as they are: float64 rounds those of 64 bits
    holds = f"whole numbers from {least} to {most}"
    if min(numbers, default=0) < least or max(numbers, default=0) > most:
        _refuse_first([not least <= number <= most for number in numbers], datatype, holds)
    values = np.array(numbers, dtype=np.float64)
    _refuse_first(values != np.rint(values), datatype, holds)
    return values


def _refuse_first(are_wrong: ArrayLike, datatype: str, holds: str) -> None:
    """Raise ValueError for the first element that is wrong, if there is one."""
    places = np.flatnonzero(are_wrong)
    if len(places):
        raise ValueError(f"{datatype} holds {holds}, not element {places[0]} (the first is 0)")


def _flat(data: list[Any], depth: int) -> list[Any]:
    """Return nested lists as one; a list that is flat already is taken too."""
    for _ in range(depth - 1):
        if not data or not isinstance(data[0], list):
            break
        if not all(isinstance(row, list) for row in data):
            raise ValueError("numbers and lists are mixed")
        data = [value for row in data for value in row]
    return data


def _unpacked(data: memoryview) -> list[str]:
    """Return texts, of which each has its length in 4 bytes before it."""
    texts, position = [], 0
    while position < len(data):
        (length,) = struct.unpack_from("<I", data, position)
        position += 4 + length
        if position > len(data):
            raise ValueError("a text is longer than the data")
        texts.append(str(data[position - length : position], "utf-8"))
    return texts


def _packed(texts: Sequence[str]) -> bytes:
    encoded = [text.encode() for text in texts]
    return b"".join(struct.pack("<I", len(text)) + text for text in encoded)


def _wrong(position: int, field: str, message: str) -> InvalidContent:
    fault = Fault(message=message, location=f"body.inputs.{position}.{field}")
    return InvalidContent("wrong_tensors", f"Input {position}: {field} {message}.", errors=[fault])
