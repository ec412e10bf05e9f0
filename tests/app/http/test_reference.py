"""The reference is served whole by this process: nothing of it comes from elsewhere."""

from __future__ import annotations

import base64
import hashlib
import re

import pytest
from fastapi.testclient import TestClient


@pytest.fixture
def page(client: TestClient) -> str:
    answer = client.get("/docs")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/html")
    return answer.text


def test_everything_that_the_page_loads_comes_from_here(client: TestClient, page: str) -> None:
    loaded = re.findall(r"""(?:src|href)=["']([^"']+)["']""", page)
    types = {path: client.get(path).headers["content-type"].partition(";")[0] for path in loaded}
    assert types == {
        "/docs/files/swagger-ui.css": "text/css",
        "/docs/files/favicon.png": "image/png",
        "/docs/files/swagger-ui-bundle.js": "text/javascript",
    }
    assert all(client.get(path).status_code == 200 for path in loaded)
    assert "SwaggerUIBundle" in client.get("/docs/files/swagger-ui-bundle.js").text
    assert "//" not in re.sub(r"(?m)^\s*//.*$", "", page).replace("<!--", "")


def test_the_root_leads_on(client: TestClient) -> None:
    links = client.get("/").json()
    assert links["reference"] == "/docs"
    assert {name: client.get(path).status_code for name, path in links.items()} == dict.fromkeys(links, 200)


def test_the_page_shows_this_api(client: TestClient, page: str) -> None:
    (url,) = re.findall(r"url: '([^']+)'", page)
    assert client.get(url).json()["info"]["title"] == "CCMTL"


def test_below_a_prefix_of_a_proxy(client: TestClient) -> None:
    with TestClient(client.app, "http://localhost", root_path="/ccmtl") as below:
        page, links = below.get("/docs").text, below.get("/").json()
    assert links["datasets"] == "/ccmtl/v1/datasets"
    assert "url: '/ccmtl/openapi.json'" in page
    assert 'src="/ccmtl/docs/files/swagger-ui-bundle.js"' in page


def test_a_file_that_is_not_there_is_a_problem_document(client: TestClient) -> None:
    for path in ("/docs/files/other.js", "/docs/files/../../consts.py", "/docs/files/"):
        answer = client.get(path)
        assert (answer.status_code, answer.json()["code"]) == (404, "route_not_found"), path


def test_pages_that_need_the_internet_are_not_there(client: TestClient) -> None:
    assert client.get("/redoc").status_code == 404


def test_the_page_runs_its_own_scripts_alone(client: TestClient, page: str) -> None:
    policy = client.get("/docs").headers["content-security-policy"]
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'self' 'sha256-{digest}';" in policy
    assert "default-src 'none'" in policy
    assert "'unsafe-inline'" not in policy.partition("style-src")[0]


def test_the_links_take_no_parameters(client: TestClient) -> None:
    answer = client.get("/?x=1")
    assert (answer.status_code, answer.json()["code"]) == (422, "unknown_parameter")
    assert answer.json()["errors"][0]["location"] == "query.x"
