"""Clients of the service that write down what it accepted, whatever happens to it meanwhile."""

from __future__ import annotations

import math
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import partial
from typing import Any

import httpx2

N_SERIES, N_DAYS, LAGS = 12, 40, 3
N_LONG_SERIES = 2500
"""Of uploads so large that the API hands them to a process of their own."""
JOBS_UNDER_WAY = 2
"""Of three workers one is mostly free, so that a new job shows how they are."""
SECONDS_FOR_AN_ANSWER = 40.0
_LATER = {429, 502, 503, 504, 507}
"""Answers that say: not now."""

Rows = Sequence[tuple[str, str, float]]


@dataclass(frozen=True)
class Sent:
    """A file that was sent until the service said what became of it."""

    dataset: str
    rows: Rows
    is_append: bool
    version: int | None
    """What it became; None where only a refusal of the same rows says that they were stored."""
    is_repeated: bool = False
    """Whether it was sent again without an idempotency key, as an answer was lost: it may be two versions."""


@dataclass(frozen=True)
class Predicted:
    """An answer with numbers."""

    model: str
    version: int
    unique_id: str
    features: tuple[float, ...]
    value: float


@dataclass
class Record:
    """What was accepted and answered, by all clients."""

    uploads: list[Sent] = field(default_factory=list)
    unanswered: list[Sent] = field(default_factory=list)
    """Files that nobody knows of whether they were stored, as the run ended before the answer."""
    jobs: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Idempotency key to job and model."""
    unknown_keys: list[str] = field(default_factory=list)
    predictions: list[Predicted] = field(default_factory=list)
    forecasts: dict[tuple[Any, ...], str] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    answers: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def fault(self, what: str) -> None:
        """Note an answer that no blow excuses."""
        with self.lock:
            self.faults.append(what)


class Client:
    """Asks any of some APIs, and counts the answers; None stands for no answer, and for "later"."""

    def __init__(self, urls: Sequence[str], record: Record, seed: str) -> None:
        self._clients = [httpx2.Client(base_url=url, timeout=SECONDS_FOR_AN_ANSWER) for url in urls]
        self.record, self.random = record, random.Random(seed)

    def ask(self, method: str, path: str, **sent: Any) -> httpx2.Response | None:
        """Return the answer of one of the APIs, None where it has to be asked again."""
        client = self.random.choice(self._clients)
        try:
            answer = client.request(method, path, **sent)
        except httpx2.HTTPError as error:
            self._count(type(error).__name__)
            return None
        self._count(str(answer.status_code))
        if answer.status_code in _LATER:
            return None
        if answer.status_code >= 500:
            self.record.fault(f"{method} {path} was answered {answer.status_code}: {answer.text[:500]}")
            return None
        return answer

    def close(self) -> None:
        """Close all connections."""
        for client in self._clients:
            client.close()

    def _count(self, what: str) -> None:
        with self.record.lock:
            self.record.answers[what] += 1


class Load:
    """Threads that upload, train and predict until they are told to end."""

    def __init__(self, urls: Sequence[str], seed: int) -> None:
        self.record = Record()
        self._ended = threading.Event()
        self._urls, self._seed = list(urls), seed
        self._models: list[str] = []
        self._threads = [
            threading.Thread(target=self._work, args=(kind, urls, name))
            for kind, urls, name in (
                (partial(self._upload, N_SERIES), self._urls, "short"),
                (partial(self._upload, N_LONG_SERIES), self._urls, "long"),
                (self._train, self._urls, "train"),
                *((self._predict, [url], f"predict-{url}") for url in urls),
            )
        ]

    def start(self) -> None:
        """Start all clients."""
        for thread in self._threads:
            thread.start()

    def end(self) -> Record:
        """Let each client finish what it is at, and return what they wrote down."""
        self._ended.set()
        for thread in self._threads:
            thread.join()
        return self.record

    def _work(self, kind: Callable[[Client, str], None], urls: Sequence[str], name: str) -> None:
        """Be one client, and tell if it ends by an answer that it cannot read."""
        client = Client(urls, self.record, f"{self._seed}-{name}")
        try:
            kind(client, name)
        except (ValueError, LookupError, TypeError) as error:
            self.record.fault(f"the client {name!r} cannot read an answer: {error!r}")
        finally:
            client.close()

    def _upload(self, n_series: int, client: Client, name: str) -> None:
        """Upload a dataset in full, append days, and begin anew, each file until it is known to be stored."""
        create_dataset(client, name, self._ended)
        day = n_appends = n_files = 0
        while not self._ended.is_set():
            is_append = day > 0 and n_appends < 5
            n_days = 2 if is_append else N_DAYS
            day, n_appends = (day, n_appends + 1) if is_append else (0, 0)
            rows = sales(client.random, n_series, day, n_days)
            day += n_days
            n_files += 1
            key = f"{name}-{n_files}" if n_files % 2 else None
            send(client, name, rows, is_append, self._ended, key)

    def _train(self, client: Client, name: str) -> None:
        under_way: list[str] = []
        number = 0
        while not self._ended.is_set():
            under_way = [job for job in under_way if not _has_ended(client, job)]
            if len(under_way) >= JOBS_UNDER_WAY or not self._has_stored("short"):
                self._ended.wait(0.3)
                continue
            number += 1
            model = f"m{number % 3}"
            job = train(client, f"{self._seed}-{number}", "short", model, self._ended)
            if job is not None:
                under_way.append(job)
            if model not in self._models:
                self._models.append(model)

    def _has_stored(self, dataset: str) -> bool:
        with self.record.lock:
            return any(sent.dataset == dataset for sent in self.record.uploads)

    def _predict(self, client: Client, name: str) -> None:
        while not self._ended.wait(0.02):
            if not self._models:
                continue
            model = client.random.choice(self._models)
            predict(client, model)
            forecast(client, model)


def create_dataset(client: Client, name: str, ended: threading.Event) -> None:
    """Create a dataset of daily series."""
    form = {"name": name, "kind": "series", "frequency": "D"}
    while not ended.is_set():
        answer = client.ask("POST", "/v1/datasets", json=form)
        if answer is not None and answer.status_code in (201, 409):
            return
        ended.wait(0.5)


def sales(chance: random.Random, n_series: int, first: int, n_days: int) -> Rows:
    """Return rows in the order in which they are stored."""
    days = [str(date(2024, 1, 1) + timedelta(first + day)) for day in range(n_days)]
    return [
        (f"P{series:05d}", day, float(chance.randrange(20))) for series in range(n_series) for day in days
    ]


def send(
    client: Client,
    name: str,
    rows: Rows,
    is_append: bool,
    ended: threading.Event,
    key: str | None = None,
) -> None:
    """Send a file until its fate is known, and write that down."""
    text = "unique_id,ds,y\n" + "".join(f"{one},{day},{y:g}\n" for one, day, y in rows)
    path = f"/v1/datasets/{name}/versions?mode={'append' if is_append else 'full'}"
    headers = {"Content-Type": "text/csv", **({} if key is None else {"Idempotency-Key": key})}
    is_doubtful = False
    while True:
        answer = client.ask("POST", path, content=text.encode(), headers=headers)
        if answer is not None:
            break
        is_doubtful = True
        if ended.wait(0.3):
            with client.record.lock:
                client.record.unanswered.append(Sent(name, rows, is_append, None, key is None))
            return
    told = answer.json()
    version: int | None = None
    if answer.status_code == 201:
        version = told["version"]
    elif key is None and told["code"] == "already_appended":
        version = int(told["suggestions"][0])
    elif key is not None or not (is_doubtful and is_append and "duplicate_period" in str(told["errors"][:1])):
        client.record.fault(f"an upload to {name} was refused: {answer.status_code} {answer.text[:500]}")
        return
    with client.record.lock:
        client.record.uploads.append(Sent(name, rows, is_append, version, is_doubtful and key is None))


def train(
    client: Client, key: str, dataset: str, model: str, ended: threading.Event, priority: str = "normal"
) -> str | None:
    """Ask for a training until it is known to be queued; return the job."""
    request = {"dataset": dataset, "model": model, "lags": LAGS, "fusion_strength": 1.0, "holdout": None}
    request |= {"priority": priority}
    while True:
        answer = client.ask("POST", "/v1/training-jobs", json=request, headers={"Idempotency-Key": key})
        if answer is not None:
            break
        if ended.wait(0.3):
            with client.record.lock:
                client.record.unknown_keys.append(key)
            return None
    if answer.status_code != 202:
        client.record.fault(f"a training was refused: {answer.status_code} {answer.text[:500]}")
        return None
    job = str(answer.json()["id"])
    with client.record.lock:
        client.record.jobs[key] = (job, model)
    return job


def predict(client: Client, model: str) -> bool:
    """Ask for a prediction, and write it down; return whether there was one."""
    one = f"P{client.random.randrange(N_SERIES):05d}"
    features = {f"lag_{lag + 1}": float(client.random.randrange(20)) for lag in range(LAGS)}
    rows = {"rows": [{"unique_id": one, "features": features}]}
    answer = client.ask("POST", f"/v1/models/{model}/predict", json=rows)
    if answer is None or answer.status_code == 404:  # nothing is published yet
        return False
    told = answer.json()
    if answer.status_code != 200 or not math.isfinite(told["predictions"][0]["yhat"]):
        client.record.fault(f"a prediction of {model}: {answer.status_code} {answer.text[:500]}")
        return False
    made = Predicted(
        model,
        told["model"]["version"],
        one,
        tuple(features.values()),
        told["predictions"][0]["yhat"],
    )
    with client.record.lock:
        client.record.predictions.append(made)
    return True


def forecast(client: Client, model: str) -> None:
    """Ask for a forecast: of one version of a model and of its data there is but one."""
    one = f"P{client.random.randrange(N_SERIES):05d}"
    answer = client.ask("GET", f"/v1/models/{model}/forecast", params={"unique_id": one, "h": 3})
    if answer is None or answer.status_code == 404:
        return
    if answer.status_code != 200:
        client.record.fault(f"a forecast of {model}: {answer.status_code} {answer.text[:500]}")
        return
    told = answer.json()
    which = (*told["model"].values(), *told["data"].values(), one)
    with client.record.lock:
        before = client.record.forecasts.setdefault(which, str(told["forecasts"]))
    if before != str(told["forecasts"]):
        client.record.fault(f"two forecasts of {which}: {before} and {told['forecasts']}")


def _has_ended(client: Client, job: str) -> bool:
    answer = client.ask("GET", f"/v1/training-jobs/{job}")
    if answer is None:
        return False
    if answer.status_code != 200:
        client.record.fault(f"job {job} is unknown: {answer.status_code}")
        return True
    return answer.json()["state"] in ("succeeded", "failed", "cancelled")


def wait_for_jobs(client: Client, seconds: float) -> list[str]:
    """Wait for all accepted jobs to end; return those that did not."""
    until = time.monotonic() + seconds
    left = [job for job, _ in client.record.jobs.values()]
    while left and time.monotonic() < until:
        left = [job for job in left if not _has_ended(client, job)]
        time.sleep(0.5)
    return left
