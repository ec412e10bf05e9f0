from __future__ import annotations

import json
import re
import subprocess
import sys

PROGRAM = """
import logging
from app.processes.logs import configure_logging
configure_logging("worker", "info", {form!r})
log = logging.getLogger("app.jobs.worker")
log.debug("not written")
log.warning("job %s\\nis lost", "job_1")
try:
    1 / 0
except ZeroDivisionError:
    log.exception("unexpected")
raise LookupError("nobody catches this")
"""


def written(form: str) -> list[str]:
    program = PROGRAM.replace("{form!r}", repr(form))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == ""
    return done.stderr.splitlines()


def test_each_event_can_be_a_json_object_on_one_line() -> None:
    lost, unexpected, uncaught = map(json.loads, written("json"))
    assert list(lost) == ["time", "level", "process", "pid", "logger", "message"]
    assert lost["message"] == "job job_1\nis lost"
    assert (lost["level"], lost["process"], lost["logger"]) == ("warning", "worker", "app.jobs.worker")
    assert unexpected["traceback"].endswith("ZeroDivisionError: division by zero")
    assert uncaught["traceback"].endswith("LookupError: nobody catches this")


def test_each_event_is_one_line_on_standard_error() -> None:
    lost, unexpected, uncaught = written("text")
    start = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z "
    assert re.fullmatch(start + r"WARNING worker\[\d+\] app\.jobs\.worker: job job_1 \| is lost", lost)
    assert re.match(start + r"ERROR worker\[\d+\] app\.jobs\.worker: unexpected \| Traceback", unexpected)
    assert unexpected.endswith("ZeroDivisionError: division by zero")
    place = r"CRITICAL worker\[\d+\] app\.processes\.logs"
    assert re.match(start + place + r": uncaught error \| Traceback", uncaught)
    assert uncaught.endswith("LookupError: nobody catches this")
