"""An API that is killed during an upload leaves no trace of it, and one that is killed while a client waits
comes back for it."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path

from ccmtl_client import Client, Progress
from tests.support.database_kinds import quickly_on
from tests.support.processes import PATIENCE, wait_until
from tests.support.service import Service, create_daily_dataset, sales_csv, upload_csv

pytestmark = quickly_on("sqlite")


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock"]


def test_killed_api_leaves_no_trace_of_an_upload(service: Service) -> None:
    create_daily_dataset(service.client, "sales")
    content = sales_csv(500, 60)
    stored = service.settings.data_dir
    before = set(files_in(stored))
    url = service.client.base_url
    with socket.create_connection((url.host, url.port or 0)) as connection:
        head = (
            "POST /v1/datasets/sales/versions?mode=full HTTP/1.1\r\nHost: localhost\r\n"
            f"Content-Type: text/csv\r\nContent-Length: {len(content)}\r\n\r\n"
        )
        connection.sendall(head.encode() + content[: len(content) // 2])
        wait_until(lambda: set(files_in(stored)) - before, "the incoming file")
        killed = service.api()
        os.kill(killed, signal.SIGKILL)
    wait_until(lambda: service.api() != killed, "the restart")
    wait_until(lambda: service.client.get("/readyz").status_code == 200, "readiness")
    assert service.client.get("/v1/datasets/sales/versions").json()["items"] == []
    left = {path for path in set(files_in(stored)) - before if not path.name.startswith("ccmtl.db")}
    assert left == set()
    assert upload_csv(service.client, "sales", content)["version"] == 1


def test_a_client_waits_for_its_job_through_a_killed_api(service: Service) -> None:
    killed: list[int] = []

    def kill_once(step: Progress) -> None:
        if not killed:
            killed.append(service.api())
            os.kill(killed[0], signal.SIGKILL)

    with Client(str(service.client.base_url), retry_for=PATIENCE) as client:
        client.datasets.upload("shop", sales_csv(20, 60), definition={"frequency": "D"})
        job = client.train("shop", "shop", lags=2, fusion_strength=1)
        assert job.wait(progress=kill_once, timeout=PATIENCE).model == "shop/versions/1"
        assert service.api() != killed[0]
        assert client.forecast_all("shop").height == 20
