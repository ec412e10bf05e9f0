"""Tells how far an upload or a training has come: to a function of the caller's, or on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ccmtl_client.frames import library


@dataclass(frozen=True)
class Progress:
    """How far something has come.

    Attributes
    ----------
    task : str
        What is done, as ``"upload"``, or the phase of a training.
    done, total : int or None
        Bytes, or fits of the choice of a strength; None where nothing is counted.
    text : str
        Details for a human reader.
    """

    task: str
    done: int | None = None
    total: int | None = None
    text: str = ""


Show = Callable[[Progress], None]


@contextmanager
def shown(progress: bool | Show) -> Iterator[Show]:
    """Yield what shows progress: the caller's function, a bar on a terminal or in a notebook, or nothing."""
    if callable(progress):
        yield progress
        return
    if not progress:
        yield lambda step: None
        return
    rich = library("rich.progress", "progress=True")
    console = library("rich.console", "progress=True").Console(stderr=True)
    columns = (
        rich.TextColumn("{task.description:<10}"),
        rich.BarColumn(),
        rich.TextColumn("{task.fields[state]}"),
        rich.TimeElapsedColumn(),
    )
    is_seen = console.is_terminal or console.is_jupyter
    with rich.Progress(*columns, console=console, transient=True, disable=not is_seen) as bar:
        line = bar.add_task("", total=None, state="")
        yield lambda step: bar.update(
            line, description=step.task, total=step.total, completed=step.done or 0, state=step.text
        )


def of_job(status: Mapping[str, Any]) -> Progress:
    """Return how far a training job has come, by its status."""
    running = status["progress"]
    if running is None or status["state"] != "running":
        ahead = status["jobs_ahead"]
        return Progress(status["state"], text=f"{ahead} jobs ahead" if ahead else "")
    words = [f"round {running['round']}"] if running["round"] else []
    done = total = None
    if selection := running["selection"]:
        done, total = selection["fits_done"], selection["fits"]
        words.append(f"fit {done} of {total}")
    if running["gap"] is not None:
        words.append(f"certified gap {running['gap']:.1e}")
    return Progress(running["phase"], done, total, ", ".join(words))
