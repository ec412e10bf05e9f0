"""The real service as a process of its own, and what a user does with it over HTTP."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import psutil

from app.settings import Settings
from tests.support.processes import PATIENCE, is_running, wait_until

FINAL = {"succeeded", "failed", "cancelled"}


@dataclass
class Service:
    """A running ``ccmtl serve``: its settings, its processes, its log, and a client of it."""

    settings: Settings
    process: subprocess.Popen[bytes]
    log_file: Path
    client: httpx2.Client

    @property
    def log(self) -> str:
        return self.log_file.read_text()

    def api(self) -> int:
        """Return the pid of the API, when it runs."""
        return wait_until(lambda: self._pids("app.main"), "the API's start")[0]

    def workers(self) -> list[int]:
        """Return the pids of the workers."""
        return self._pids("app.jobs.worker")

    def fits(self) -> list[int]:
        """Return the pids of the fit children."""
        return self._pids("app.jobs.fit_child")

    def fit_of(self, job_id: str) -> int:
        """Wait for the job's fit child and return its pid."""

        def pid() -> int | None:
            return next((p for p in self.fits() if job_id in psutil.Process(p).cmdline()), None)

        return wait_until(pid, "the start of the fit child") or 0

    def all_pids(self) -> list[int]:
        """Return the pids of the supervisor and everything under it."""
        root = psutil.Process(self.process.pid)
        return [root.pid, *(child.pid for child in root.children(recursive=True))]

    def _pids(self, module: str) -> list[int]:
        found = []
        for child in psutil.Process(self.process.pid).children(recursive=True):
            try:
                if module in child.cmdline():
                    found.append(child.pid)
            except psutil.NoSuchProcess:
                continue
        return found


@contextmanager
def running_service(folder: Path, **settings: Any) -> Iterator[Service]:
    """Start ``ccmtl serve`` on a free port with its data in ``folder``; end it, and see all of it end."""
    log_file = folder / f"service-{time.monotonic_ns()}.log"
    chosen = Settings(data_dir=folder / "var", port=0, **settings)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CCMTL_")}
    environment |= chosen.environment()
    with log_file.open("wb") as log:
        command = [sys.executable, "-m", "app.commands.cli", "serve"]
        process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stderr=log)
    try:
        with httpx2.Client(base_url=_address(process, log_file), timeout=PATIENCE) as client:
            service = Service(chosen, process, log_file, client)
            wait_until(lambda: client.get("/readyz").status_code == 200, "readiness")
            yield service
            if process.poll() is None:
                pids = service.all_pids()
                process.terminate()
                assert process.wait(PATIENCE) == 0, service.log
                assert [pid for pid in pids if is_running(pid)] == []
    finally:
        process.kill()
        process.wait()


def _address(process: subprocess.Popen[bytes], log_file: Path) -> str:
    def address() -> str | None:
        assert process.poll() is None, log_file.read_text()
        found = re.search(r"listening on (http://\S+)", log_file.read_text())
        return found and found[1]

    return wait_until(address, "the service's start") or ""


def sales_csv(n_products: int, n_days: int, seed: int = 0) -> bytes:
    """Return daily sales in long form: groups of products that share their habits, with noise."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 20, n_products)
    level = rng.gamma(2.0, 2.0, 20)[group]
    season = rng.uniform(0, 2 * np.pi, 20)[group]
    day = np.arange(n_days)
    mean = level[:, None] * (1.5 + np.sin(2 * np.pi * day / 7 + season[:, None]))
    sales = rng.poisson(mean)
    start = np.datetime64("2025-01-01")
    dates = [str(start + int(offset)) for offset in day]
    lines = [
        f"P{product:06d},{date},{value}"
        for product in range(n_products)
        for date, value in zip(dates, sales[product].tolist(), strict=True)
    ]
    return ("unique_id,ds,y\n" + "\n".join(lines) + "\n").encode()


def create_daily_dataset(client: httpx2.Client, name: str) -> None:
    """Create a dataset of daily series in long form."""
    answer = client.post("/v1/datasets", json={"name": name, "kind": "series", "frequency": "D"})
    assert answer.status_code == 201, answer.text


def upload_csv(client: httpx2.Client, name: str, content: bytes) -> dict[str, Any]:
    """Upload a version of the dataset and return the answer's body."""
    answer = client.post(
        f"/v1/datasets/{name}/versions?mode=full", content=content, headers={"Content-Type": "text/csv"}
    )
    assert answer.status_code == 201, answer.text
    body: dict[str, Any] = answer.json()
    return body


def start_training(client: httpx2.Client, **request: Any) -> str:
    """Queue a training job and return its id."""
    answer = client.post("/v1/training-jobs", json=request)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["id"])


def read_job(client: httpx2.Client, job_id: str) -> Mapping[str, Any]:
    """Return the job as users see it."""
    answer = client.get(f"/v1/training-jobs/{job_id}")
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def wait_for_end(client: httpx2.Client, job_id: str) -> Mapping[str, Any]:
    """Wait for the job's final state and return the job."""
    wait_until(lambda: read_job(client, job_id)["state"] in FINAL, f"the end of {job_id}")
    return read_job(client, job_id)


def versions_of(client: httpx2.Client, model: str) -> list[int]:
    """Return the numbers of the model's published versions."""
    answer = client.get(f"/v1/models/{model}/versions")
    if answer.status_code == 404:
        return []
    return [version["version"] for version in answer.json()["items"]]


def wait_for_phase(client: httpx2.Client, job_id: str, name: str) -> None:
    """Wait until the job tells that it is in a phase whose name holds ``name``."""

    def arrived() -> bool:
        job = read_job(client, job_id)
        assert job["state"] not in FINAL, f"the job ended before {name}: {job}"
        return name in (job["progress"] or {}).get("phase", "")

    wait_until(arrived, f"phase {name}")


def queue_long_training(client: httpx2.Client, model: str = "long") -> str:
    """Queue a training that takes several seconds, its dataset uploaded if need be; return the job's id."""
    if client.get("/v1/datasets/long").status_code == 404:
        create_daily_dataset(client, "long")
        upload_csv(client, "long", sales_csv(2000, 60))
    effort = {"lags": 28, "fusion_strength": 1000.0, "tolerance": 1e-9, "holdout": None}
    return start_training(client, dataset="long", model=model, **effort)
