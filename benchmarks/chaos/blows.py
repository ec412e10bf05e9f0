"""What is done to the processes of a running service, and how long it takes to be well again."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress

import psycopg

from benchmarks.chaos.cluster import API, FIT, LEASE_SECONDS, READER, WORKER, Cluster, Node, wait_for
from benchmarks.chaos.load import N_SERIES, Client, Record, create_dataset, predict, sales, send, train
from benchmarks.processes import all_below, command_of

Blow = Callable[[Cluster, random.Random], None]
PROBED = "probe"
"""The dataset and the model that show whether all is well."""
_SUSPENDED = 2 * LEASE_SECONDS
_AWAY = 4.0
"""Seconds of a suspended process, and of a database that cannot be reached."""


def _processes(cluster: Cluster, module: str) -> list[int]:
    return [pid for node in cluster.nodes for pid in node.pids(module)]


def _kill(pids: Collection[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@contextmanager
def _suspending(pids: Collection[int]) -> Iterator[None]:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def _one_of(cluster: Cluster, chance: random.Random, module: str) -> list[int]:
    found = _processes(cluster, module)
    return [chance.choice(found)] if found else []


def kill_worker(cluster: Cluster, chance: random.Random) -> None:
    """SIGKILL for one worker."""
    _kill(_one_of(cluster, chance, WORKER))


def kill_all_workers(cluster: Cluster, chance: random.Random) -> None:
    """SIGKILL for all workers at once."""
    _kill(_processes(cluster, WORKER))


def kill_fit(cluster: Cluster, chance: random.Random) -> None:
    """SIGKILL for a training, once there is one."""
    wait_for(lambda: bool(_processes(cluster, FIT)), 10)
    _kill(_one_of(cluster, chance, FIT))


def kill_reader(cluster: Cluster, chance: random.Random) -> None:
    """SIGKILL for the process that reads a large upload, once there is one."""
    wait_for(lambda: bool(_processes(cluster, READER)), 10)
    _kill(_one_of(cluster, chance, READER))


def kill_api(cluster: Cluster, chance: random.Random) -> None:
    """SIGKILL for one API."""
    _kill(_one_of(cluster, chance, API))


def kill_both_apis(cluster: Cluster, chance: random.Random) -> None:
    """SIGKILL for both APIs at once."""
    _kill(_processes(cluster, API))


def kill_service(cluster: Cluster, chance: random.Random) -> None:
    """SIGKILL for one ``ccmtl serve``, which is started again as systemd would."""
    node = chance.choice(cluster.nodes)
    assert node.process is not None
    node.process.kill()
    node.process.wait()
    node.start()


def suspend_worker(cluster: Cluster, chance: random.Random) -> None:
    """SIGSTOP for one worker and its training, until another has taken over its job, then SIGCONT."""
    pids = _one_of(cluster, chance, WORKER)
    with _suspending([*pids, *(below for pid in pids for below in all_below(pid))]):
        time.sleep(_SUSPENDED)


def suspend_api(cluster: Cluster, chance: random.Random) -> None:
    """SIGSTOP for one API, then SIGCONT."""
    with _suspending(_one_of(cluster, chance, API)):
        time.sleep(_SUSPENDED)


def fill_disk(cluster: Cluster, chance: random.Random) -> None:
    """Leave no room in the data folder, for a while."""
    ballast = cluster.data_dir / "ballast"
    try:
        with suppress(OSError), ballast.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(1 << 20))
        time.sleep(_AWAY)
    finally:
        ballast.unlink()


def kill_postgres(cluster: Cluster, chance: random.Random) -> None:
    """SIGKILL for the first process of PostgreSQL; it is started again."""
    assert cluster.postgres is not None
    assert cluster.postgres.process is not None
    cluster.postgres.process.kill()
    cluster.postgres.process.wait()
    time.sleep(_AWAY)
    cluster.restart_postgres()


def kill_postgres_backend(cluster: Cluster, chance: random.Random) -> None:
    """SIGKILL for a process of PostgreSQL that serves a connection: all others end, and it recovers."""
    served = [pid for pid in cluster.postgres_pids()[1:] if " ccmtl " in " ".join(command_of(pid))]
    _kill([chance.choice(served)] if served else [])


def suspend_postgres(cluster: Cluster, chance: random.Random) -> None:
    """SIGSTOP for all of PostgreSQL, then SIGCONT."""
    with _suspending(cluster.postgres_pids()):
        time.sleep(_SUSPENDED)


def end_connections(cluster: Cluster, chance: random.Random) -> None:
    """End all connections by PostgreSQL's own means."""
    assert cluster.postgres is not None
    with psycopg.connect(
        host=str(cluster.postgres.folder), user="postgres", dbname="postgres", autocommit=True
    ) as connection:
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'ccmtl'")


def cut_connections(cluster: Cluster, chance: random.Random) -> None:
    """Cut the network to PostgreSQL: open connections break, and new ones are refused."""
    assert cluster.proxy is not None
    cluster.proxy.cut()
    time.sleep(_AWAY)
    cluster.proxy.restore()


def silence_connections(cluster: Cluster, chance: random.Random) -> None:
    """Let the network to PostgreSQL pass nothing on, without a word; then cut it."""
    assert cluster.proxy is not None
    cluster.proxy.fall_silent()
    time.sleep(_SUSPENDED)
    cluster.proxy.cut()
    cluster.proxy.restore()


OF_ALL: Mapping[str, Blow] = {
    "kill -9 of a worker": kill_worker,
    "kill -9 of all workers": kill_all_workers,
    "kill -9 of a training": kill_fit,
    "kill -9 of the reader of an upload": kill_reader,
    "kill -9 of an API": kill_api,
    "kill -9 of both APIs": kill_both_apis,
    "kill -9 of a service": kill_service,
    "SIGSTOP of a worker": suspend_worker,
    "SIGSTOP of an API": suspend_api,
}
OF_SMALL_DISKS: Mapping[str, Blow] = {"full disk": fill_disk}
OF_POSTGRESQL: Mapping[str, Blow] = {
    "kill -9 of PostgreSQL": kill_postgres,
    "kill -9 of a connection's process": kill_postgres_backend,
    "SIGSTOP of PostgreSQL": suspend_postgres,
    "connections ended": end_connections,
    "connections cut": cut_connections,
    "connections silent, then cut": silence_connections,
}


def blows_for(cluster: Cluster) -> dict[str, Blow]:
    """Return the blows that this run can deal."""
    small = OF_SMALL_DISKS if cluster.is_small_disk else {}
    return {**OF_ALL, **small, **(OF_POSTGRESQL if cluster.postgres is not None else {})}


class Health:
    """Asks each API to upload, to train and to predict, and so sees whether all is well."""

    def __init__(self, nodes: list[Node], seed: int) -> None:
        self.record = Record()
        self._clients = [Client([node.url], self.record, f"{seed}-{node.name}") for node in nodes]
        self._nodes = nodes
        self._day = self._number = 0
        self._last_job: str | None = None
        self._never = threading.Event()

    def prepare(self) -> None:
        """Store what is asked about, and wait for its model."""
        first = self._clients[0]
        create_dataset(first, PROBED, self._never)
        self._send(first, 20)
        job = self._train(first)
        while job is None or not _is(first, job, {"succeeded"}):
            time.sleep(0.2)

    def close(self) -> None:
        """Close all connections."""
        for client in self._clients:
            client.close()

    def seconds(self, most: float, *, ready_only: bool = False) -> float | None:
        """Return how long it takes until all is well, None if it takes longer than ``most``."""
        begun = time.monotonic()
        todo = [self._is_ready, self._takes_uploads, self._predicts, self._trains]
        todo = todo[:1] if ready_only else todo
        while todo and time.monotonic() - begun < most:
            if todo[0]():
                todo.pop(0)
            else:
                time.sleep(0.1)
        return None if todo else time.monotonic() - begun

    def rest(self, most: float) -> None:
        """Wait for the end of the last job that was asked for: two of one model do not run at a time."""
        if (job := self._last_job) is not None:
            wait_for(lambda: _is(self._clients[0], job, {"succeeded", "failed"}), most)

    def _is_ready(self) -> bool:
        answers = [client.ask("GET", "/readyz") for client in self._clients]
        workers = sum(len(node.pids(WORKER)) for node in self._nodes)
        return all(answer is not None and answer.status_code == 200 for answer in answers) and workers == sum(
            node.settings.workers for node in self._nodes
        )

    def _takes_uploads(self) -> bool:
        return all(self._send(client, 1) for client in self._clients)

    def _predicts(self) -> bool:
        return all(predict(client, PROBED) for client in self._clients)

    def _trains(self) -> bool:
        """Whether a worker takes a job that goes before all others."""
        job = self._train(self._clients[-1])
        return (
            job is not None
            and wait_for(lambda: _is(self._clients[0], job, {"running", "succeeded"}), 60) is not None
        )

    def _send(self, client: Client, n_days: int) -> bool:
        is_append = self._day > 0
        n_before = len(self.record.uploads)
        send(client, PROBED, sales(client.random, N_SERIES, self._day, n_days), is_append, self._never)
        self._day += n_days
        return len(self.record.uploads) > n_before

    def _train(self, client: Client) -> str | None:
        self._number += 1
        key = f"probe-{self._number}"
        self._last_job = train(client, key, PROBED, PROBED, self._never, priority="high")
        return self._last_job


def _is(client: Client, job: str, states: set[str]) -> bool:
    answer = client.ask("GET", f"/v1/training-jobs/{job}")
    return answer is not None and answer.status_code == 200 and answer.json()["state"] in states
