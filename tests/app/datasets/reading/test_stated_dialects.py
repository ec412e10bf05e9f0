"""What an upload states of its file, and what its report says was guessed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.app.datasets.conftest import Shop

ROWS = [("001", "2024-01-01", "1234.5"), ("1", "2024-01-02", "-2")]
PLAIN = "unique_id,ds,y\n" + "".join(f"{','.join(row)}\n" for row in ROWS)
STATED: dict[str, tuple[bytes, dict[str, Any]]] = {
    "a delimiter": (PLAIN.replace(",", "^").encode(), {"delimiter": "^"}),
    "a decimal comma": (PLAIN.replace("1234.5", '"1234,5"').encode(), {"decimal": ","}),
    "a header": (f"y,ds,unique_id\n{PLAIN}".encode(), {"header_row": 2}),
    "a wide table": (b"unique_id,2024-01-01,2024-01-02\n001,1234.5,-2\n", {"shape": "wide"}),
}


@pytest.mark.parametrize("name", STATED)
def test_what_is_stated_is_taken(shop: Shop, name: str) -> None:
    content, stated = STATED[name]
    report = shop.accepted(shop.series(), content, **stated)
    assert report["rows"] == 2
    (option,) = stated
    assert report["dialect"][option]["origin"] == "stated"


def test_a_stated_encoding_is_taken(shop: Shop) -> None:
    url, body = f"/v1/datasets/{shop.series()}/versions", PLAIN.replace("001", "é").encode("windows-1252")
    answer = shop.client.post(
        url, content=body, headers={"Content-Type": "text/csv"}, params={"encoding": "windows-1252"}
    )
    assert answer.json()["report"]["dialect"]["encoding"]["origin"] == "stated"


def test_what_is_guessed_is_told(shop: Shop) -> None:
    report = shop.accepted(shop.series(), PLAIN.replace(",", ";").replace("1234.5", "1.234,5"))
    told = {name: trait["value"] for name, trait in report["dialect"].items()}
    assert {"delimiter": ";", "decimal": ",", "thousands": ".", "header_row": 1}.items() <= told.items()
    assert all(trait["origin"] == "guessed" and trait["evidence"] for trait in report["dialect"].values())


def test_what_cannot_be_meant_is_refused(shop: Shop) -> None:
    problem = shop.refused(shop.series(), PLAIN, delimiter=",,")
    assert "one ASCII character" in problem["errors"][0]["message"]
