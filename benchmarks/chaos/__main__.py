"""Kill -9, suspend, cut off and fill up, in turn and under load, and check that nothing accepted is lost.

Two services (2 API and 3 worker processes) share a data folder and a database. Clients upload, append, train,
predict and forecast all the while, and write down what was accepted. After each blow the time is taken until
each API is ready, takes an upload and predicts, and a worker takes a new job. In the end all that was
accepted is looked for: the files row by row, the jobs, the versions and their weights, and the answers.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import time
from collections.abc import Iterator

from rich.console import Console

from benchmarks.chaos import blows, verdict
from benchmarks.chaos.cluster import Cluster, running
from benchmarks.chaos.load import Client, Load, Record, wait_for_jobs

WELL_WITHIN = 30.0
_PATIENCE = 300.0


def say(text: str) -> None:
    """Print a line at once."""
    Console(highlight=False).print(f"{time.strftime('%H:%M:%S')} {text}", markup=False, soft_wrap=True)


def chaos(
    database: str, seed: int, minutes: float, only: list[str] | None = None, within: float = WELL_WITHIN
) -> list[str]:
    """Deal blows for so many minutes, each kind once at least; return what is wrong in the end.

    After each all must be well ``within`` so many seconds.
    """
    with running(database) as cluster:
        for what in cluster.skipped:
            say(f"SKIPPED: {what}")
        health = blows.Health(cluster.nodes, seed)
        if health.seconds(_PATIENCE, ready_only=True) is None:
            return ["the services did not start", *(node.log.read_text()[-2000:] for node in cluster.nodes)]
        health.prepare()
        load = Load([node.url for node in cluster.nodes], seed)
        load.start()
        try:
            wrong = list(_dealt(cluster, health, seed, minutes, only, within))
        finally:
            record = load.end()
        health.close()
        wrong += _left(cluster, record, health.record)
        for node in cluster.nodes:
            code = node.stop()
            if code != 0:
                wrong.append(f"{node.name} ended with code {code}")
        if wrong:
            wrong += [
                f"the end of the log of {node.name}:\n{_tail(node.log.read_text())}" for node in cluster.nodes
            ]
    return wrong


def _dealt(
    cluster: Cluster,
    health: blows.Health,
    seed: int,
    minutes: float,
    only: list[str] | None,
    within: float,
) -> Iterator[str]:
    chance = random.Random(seed)
    known = {name: blow for name, blow in blows.blows_for(cluster).items() if only is None or name in only}
    until = time.monotonic() + 60 * minutes
    n_dealt = 0
    while n_dealt < len(known) or time.monotonic() < until:
        for name in chance.sample(list(known), len(known)):
            if n_dealt >= len(known) and time.monotonic() >= until:
                return
            health.rest(_PATIENCE)
            known[name](cluster, chance)
            seconds = health.seconds(_PATIENCE)
            n_dealt += 1
            if seconds is None:
                yield f"after {name} the service was not well again within {_PATIENCE:g} s"
                return
            say(f"{name}: well again after {seconds:.1f} s (load {os.getloadavg()[0]:.0f})")
            if seconds > within:
                yield f"after {name} it took {seconds:.1f} s to be well again, more than {within:g}"


def _left(cluster: Cluster, *records: Record) -> Iterator[str]:
    """What is wrong with what was accepted."""
    urls = [node.url for node in cluster.nodes]
    all_of = Record()
    for record in records:
        all_of.uploads += record.uploads
        all_of.unanswered += record.unanswered
        all_of.jobs |= record.jobs
        all_of.unknown_keys += record.unknown_keys
        all_of.predictions += record.predictions
        all_of.faults += record.faults
        all_of.answers += record.answers
    last = Client(urls, all_of, "end")
    left = wait_for_jobs(last, _PATIENCE)
    last.close()
    yield from (f"job {job} has not ended" for job in left)
    answers = ", ".join(f"{n} × {what}" for what, n in all_of.answers.most_common())
    say(f"accepted: {len(all_of.uploads)} files, {len(all_of.jobs)} jobs; answers: {answers}")
    say(f"compared: {len(all_of.predictions)} predictions")
    settings = cluster.nodes[0].settings
    yield from verdict.lost_or_changed(settings, all_of, may_be_full=cluster.is_small_disk)
    yield from verdict.wrong_predictions(urls, all_of)
    yield from all_of.faults


def _tail(text: str) -> str:
    return "\n".join(text.splitlines()[-40:])


def main(arguments: list[str] | None = None) -> int:
    """Run it as the command line says; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.chaos", description=__doc__)
    parser.add_argument("--database", choices=["sqlite", "postgresql"], default="postgresql")
    parser.add_argument("--minutes", type=float, default=5, help="how long, at least; each blow falls once")
    parser.add_argument("--seed", type=int, default=0, help="of the order of the blows and of what is sent")
    parser.add_argument("--only", action="append", help="a blow by its name; may be given several times")
    parser.add_argument("--within", type=float, default=WELL_WITHIN, help="seconds until all must be well")
    chosen = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # to end all that was started
    wrong = chaos(chosen.database, chosen.seed, chosen.minutes, chosen.only, chosen.within)
    for what in wrong:
        say(f"WRONG: {what}")
    say("nothing was lost, written twice or half-written" if not wrong else f"{len(wrong)} things are wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
