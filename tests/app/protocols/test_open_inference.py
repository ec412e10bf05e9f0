"""The Open Inference Protocol: what its clients send, byte by byte, and what they get."""

from __future__ import annotations

import gzip
import json
import struct
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from app.persistence.database import Database
from tests.support.models import add_version, trained

WEIGHTS, INTERCEPT = np.array([[1.0, 2.0], [0.1, -3.0]]), [0.5, 0.0]
IDS = [b"0001", "日本茶".encode(), b"unknown"]
X = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
YHAT = [5.5, 0.1 * 3.0 + -3.0 * 4.0]
URL = "/v2/models/sales/infer"


@pytest.fixture(scope="module")
def database_kind() -> str:
    return "sqlite"  # the database answers as for other predictions


@pytest.fixture(autouse=True)
def _published(database: Database) -> None:
    names = ["price", "promotion"]
    add_version(database, trained(WEIGHTS, ["0001", "日本茶"], feature_names=names, intercept=INTERCEPT))


def tensor(name: str, datatype: str, shape: list[int], **rest: Any) -> dict[str, Any]:
    return {"name": name, "shape": shape, "datatype": datatype, **rest}


def in_json(**changes: Any) -> dict[str, Any]:
    ids = tensor("unique_id", "BYTES", [3], data=[i.decode() for i in IDS])
    return {"inputs": [ids, tensor("features", "FP64", [3, 2], data=X.ravel().tolist())], **changes}


def by_triton(binary_output: bool) -> tuple[bytes, dict[str, str]]:
    """What tritonclient 2.73 sends for set_data_from_numpy with binary data, outputs named or not."""
    ids = b"".join(struct.pack("<I", len(i)) + i for i in IDS)
    asked: dict[str, Any] = {
        "id": "7",
        "inputs": [
            tensor("unique_id", "BYTES", [3], parameters={"binary_data_size": len(ids)}),
            tensor("features", "FP64", [3, 2], parameters={"binary_data_size": 48}),
        ],
    }
    if binary_output:
        asked["parameters"] = {"binary_data_output": True}
    else:
        asked["outputs"] = [{"name": "yhat", "parameters": {"binary_data": False}}]
    head = json.dumps(asked, separators=(",", ":")).encode()
    headers = {"Inference-Header-Content-Length": str(len(head)), "Content-Type": "application/octet-stream"}
    return head + ids + X.astype("<f8").tobytes(), headers


def test_tensors_in_json_are_answered_in_json(client: TestClient) -> None:
    answer = client.post(URL, json=in_json(id="42"))
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == {
        "model_name": "sales",
        "model_version": "1",
        "id": "42",
        "outputs": [
            {"name": "yhat", "datatype": "FP64", "shape": [3], "data": [*YHAT, None]},
            {"name": "status", "datatype": "BYTES", "shape": [3], "data": ["ok", "ok", "unknown_unique_id"]},
        ],
    }


def test_binary_tensors_are_answered_in_binary(client: TestClient) -> None:
    content, headers = by_triton(binary_output=True)
    answer = client.post(URL, content=content, headers=headers)
    assert answer.headers["content-type"] == "application/octet-stream"
    length = int(answer.headers["Inference-Header-Content-Length"])
    head, binary = json.loads(answer.content[:length]), answer.content[length:]
    sizes = [output["parameters"]["binary_data_size"] for output in head["outputs"]]
    assert (head["id"], sizes) == ("7", [24, 3 * 4 + len("okokunknown_unique_id")])
    assert np.frombuffer(binary[:24], "<f8").tolist()[:2] == YHAT
    assert np.isnan(np.frombuffer(binary[:24], "<f8")[2])
    assert binary[24:36] == b"\x02\0\0\0ok\x02\0\0\0ok"
    assert binary[36:] == struct.pack("<I", 17) + b"unknown_unique_id"


def test_binary_tensors_are_answered_in_json_if_that_is_asked(client: TestClient) -> None:
    content, headers = by_triton(binary_output=False)
    outputs = client.post(URL, content=content, headers=headers).json()["outputs"]
    assert outputs == [{"name": "yhat", "datatype": "FP64", "shape": [3], "data": [*YHAT, None]}]


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("datatype", ["FP32", "INT8", "UINT64"])
def test_each_feature_may_be_a_tensor_of_any_type_of_number(
    client: TestClient, nested: bool, datatype: str
) -> None:
    shape = [3, 1] if nested else [3]
    columns = X.T.astype(int if "INT" in datatype else float)[:, :, None]
    data = columns if nested else columns[:, :, 0]
    inputs = [
        tensor("promotion", datatype, shape, data=data[1].tolist()),
        tensor("unique_id", "BYTES", shape, data=[[i.decode()] if nested else i.decode() for i in IDS]),
        tensor("price", datatype, shape, data=data[0].tolist()),
    ]
    outputs = client.post(URL, json={"inputs": inputs}).json()["outputs"]
    assert outputs[0]["data"] == [*YHAT, None]


def test_server_and_model_describe_themselves(client: TestClient) -> None:
    assert client.get("/v2").json()["extensions"] == ["binary_tensor_data"]
    assert client.get("/v2/health/live").json() == {"live": True}
    assert client.get("/v2/health/ready").status_code == 200
    for model in ("sales", "sales/versions/1"):
        assert client.get(f"/v2/models/{model}/ready").json() == {"name": "sales", "ready": True}
        metadata = client.get(f"/v2/models/{model}").json()
        assert (metadata["name"], metadata["versions"]) == ("sales", ["1"])
        assert metadata["inputs"] == [tensor("unique_id", "BYTES", [-1]), tensor("features", "FP64", [-1, 2])]
        assert metadata["outputs"] == [tensor("yhat", "FP64", [-1]), tensor("status", "BYTES", [-1])]
        assert metadata["feature_names"] == ["price", "promotion"]


def test_an_error_says_what_is_wrong_as_the_protocol_has_it(client: TestClient) -> None:
    answer = client.get("/v2/models/sale/ready")
    assert answer.status_code == 404
    assert answer.json()["error"] == answer.json()["detail"]
    assert "error" not in client.get("/v1/models/sale").json()


FIRST, SECOND = in_json()["inputs"]


@pytest.mark.parametrize(
    ("inputs", "location"),
    [
        ([FIRST], "body.inputs"),
        ([FIRST, FIRST, SECOND], "body.inputs.1.name"),
        ([FIRST, SECOND, {**SECOND, "name": "x"}], "body.inputs.1.name"),
        ([FIRST, {**SECOND, "shape": [2, 3]}], "body.inputs.1.shape"),
        ([FIRST, {**SECOND, "shape": [2, 2]}], "body.inputs.1.data"),
        ([FIRST, {**SECOND, "shape": []}], "body.inputs.1.shape"),
        ([FIRST, {**SECOND, "shape": [-3, -2]}], "body.inputs.1.shape"),
        ([FIRST, {**SECOND, "datatype": "FP8"}], "body.inputs.1.datatype"),
        ([FIRST, {**SECOND, "data": ["1"] * 6}], "body.inputs.1.data"),
        ([FIRST, {**SECOND, "data": [[1.0, 2.0], 3.0]}], "body.inputs.1.data"),
        (
            [FIRST, {**SECOND, "parameters": {"binary_data_size": 8}}],
            "body.inputs.1.parameters.binary_data_size",
        ),
        ([{**FIRST, "datatype": "FP64", "data": [1.0] * 3}, SECOND], "body.inputs.0.datatype"),
        ([FIRST, {**SECOND, "datatype": "BYTES", "data": ["1"] * 6}], "body.inputs.1.datatype"),
        ([{**FIRST, "shape": "3"}, SECOND], "body.inputs.0.shape"),
    ],
)
def test_tensors_that_do_not_fit_are_refused(client: TestClient, inputs: Any, location: str) -> None:
    answer = client.post(URL, json={"inputs": inputs})
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["location"] == location


@pytest.mark.parametrize(
    ("names", "missing"),
    [([], ["unique_id", "features"]), (["unique_id"], ["features"]), (["price"], ["unique_id", "promotion"])],
)
def test_all_inputs_that_are_missing_are_named(
    client: TestClient, names: list[str], missing: list[str]
) -> None:
    given = [tensor(name, "BYTES", [1], data=["1"]) for name in names]
    told = client.post(URL, json={"inputs": given}).json()
    assert [fault["message"] for fault in told["errors"]] == [
        f"the input {name!r} is missing" for name in missing
    ]
    assert all(f"{name!r} is missing" in told["detail"] for name in missing)
    assert "the inputs are unique_id and features, or each feature by its name" in told["detail"]


@pytest.mark.parametrize(
    ("datatype", "wrong", "said"),
    [
        ("INT8", 300, "INT8 holds whole numbers from -128 to 127, not element 4"),
        ("INT16", -32769, "INT16 holds whole numbers from -32768 to 32767, not element 4"),
        ("INT64", 2**63, f"INT64 holds whole numbers from {-(2**63)} to {2**63 - 1}, not element 4"),
        ("INT64", 1.5, f"INT64 holds whole numbers from {-(2**63)} to {2**63 - 1}, not element 4"),
        ("UINT64", -1, f"UINT64 holds whole numbers from 0 to {2**64 - 1}, not element 4"),
        ("UINT8", 10**400, "UINT8 holds whole numbers from 0 to 255, not element 4"),
        ("FP16", 65520, "FP16 holds numbers from -65504 to 65504, not element 4"),
        ("FP32", -1e300, "FP32 holds numbers from -3.40282e+38 to 3.40282e+38, not element 4"),
        ("FP64", 10**400, "out of range - at `$[4]`"),
        ("BOOL", 2, "`bool`, got `int` - at `$[4]`"),
    ],
)
def test_a_number_that_its_datatype_does_not_hold_is_refused_with_its_place(
    client: TestClient, datatype: str, wrong: float, said: str
) -> None:
    one = datatype == "BOOL" or 1
    data = [[one, one], [one, one], [wrong, one]]
    answer = client.post(URL, json={"inputs": [FIRST, {**SECOND, "datatype": datatype, "data": data}]})
    told = answer.json()
    assert (answer.status_code, told["code"]) == (422, "wrong_tensors")
    assert told["errors"][0]["location"] == "body.inputs.1.data"
    assert "Input 1: data" in told["detail"]
    assert said in told["detail"]


@pytest.mark.parametrize(
    ("datatype", "price"),
    [
        *(("INT64", -(2**63)), ("INT64", 2**63 - 1), ("UINT64", 2**64 - 1), ("INT8", -128.0)),
        *(("FP32", 3.4028235e38), ("FP16", 65504), ("BOOL", True)),
    ],
)
def test_the_largest_number_that_a_datatype_holds_is_taken(
    client: TestClient, datatype: str, price: float
) -> None:
    inputs = [
        tensor("unique_id", "BYTES", [1], data=["0001"]),
        tensor("price", datatype, [1], data=[price]),
        tensor("promotion", "FP64", [1], data=[0.0]),
    ]
    outputs = client.post(URL, json={"inputs": inputs}).json()["outputs"]
    assert outputs[0]["data"] == [WEIGHTS[0, 0] * price + INTERCEPT[0]]


def test_a_byte_that_is_no_truth_value_is_refused(client: TestClient) -> None:
    features = tensor("features", "BOOL", [3, 2], parameters={"binary_data_size": 6})
    head = json.dumps({"inputs": [FIRST, features]}).encode()
    headers = {"Inference-Header-Content-Length": str(len(head)), "Content-Type": "application/octet-stream"}
    assert client.post(URL, content=head + bytes([0, 1, 1, 0, 1, 0]), headers=headers).status_code == 200
    answer = client.post(URL, content=head + bytes([0, 1, 2, 0, 1, 0]), headers=headers)
    assert answer.status_code == 422
    assert "BOOL holds the bytes 0 and 1, not element 2" in answer.json()["detail"]


@pytest.mark.parametrize("cut", [0, 1, 60])
def test_binary_data_that_is_cut_off_is_refused(client: TestClient, cut: int) -> None:
    content, headers = by_triton(binary_output=True)
    wrong = content[:-cut] if cut else content + b"x"
    assert client.post(URL, content=wrong, headers=headers).status_code in (400, 422)
    headers["Inference-Header-Content-Length"] = str(len(content) + 1)
    assert client.post(URL, content=content, headers=headers).status_code == 400


def test_numbers_that_are_not_finite_are_refused_with_their_place(client: TestClient) -> None:
    content, headers = by_triton(binary_output=True)
    answer = client.post(URL, content=content[:-8] + struct.pack("<d", np.nan), headers=headers)
    assert (answer.status_code, answer.json()["errors"][0]["location"]) == (422, "body.promotion.2")


def test_tensors_may_be_packed(client: TestClient) -> None:
    content, headers = by_triton(binary_output=False)
    plain = client.post(URL, content=content, headers=headers)
    packed = client.post(URL, content=gzip.compress(content), headers={**headers, "Content-Encoding": "gzip"})
    assert packed.status_code == 200
    assert packed.content == plain.content


def test_what_is_no_json_is_refused(client: TestClient) -> None:
    assert client.post(URL, content=b"<x/>", headers={"Content-Type": "text/xml"}).status_code == 415
    for encoding, code in (("gzip", "undecodable_body"), ("br", "unsupported_content_encoding")):
        packed = {"Content-Encoding": encoding, "Content-Type": "application/json"}
        assert client.post(URL, content=b"\x1f\x8b", headers=packed).json()["code"] == code
    assert client.post(URL, content=b'{"inputs": [], "inputs": []}').json()["code"] == "repeated_key"
