"""Datasets: define them, and upload files, bytes or tables as their versions."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Literal
from urllib.parse import quote

from ccmtl_client.errors import Conflict, NotFound
from ccmtl_client.frames import as_polars
from ccmtl_client.progress import Progress, Show, shown
from ccmtl_client.wire import Answer, Wire

PIECE_BYTES = 256 * 1024
READING_SECONDS = 1800.0
"""The service answers an upload once it has read and checked the whole file."""


class Datasets:
    """The datasets of the service: ``client.datasets``."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def create(self, name: str, kind: str = "series", **definition: Any) -> Answer:
        """Define a dataset, unless it is there with this definition already.

        Parameters
        ----------
        name : str
            Its name.
        kind : {"series", "regression"}
            Values over time, or rows of features and a target.
        **definition
            The rest of the definition, as ``frequency="D"``, ``columns={...}`` or ``fill={...}``.

        Returns
        -------
        dict
            The dataset.

        Raises
        ------
        Conflict
            There is one of this name with another definition.
        InvalidContent
            The definition has faults.

        Examples
        --------
        >>> client.datasets.create("toys", frequency="D", duplicates="sum")["newest_version"] is None
        True
        """
        wanted = {"name": name, "kind": kind, **definition}
        try:
            created: Answer = self._wire.call("POST", "/v1/datasets", json=wanted)
        except Conflict:
            found = self.get(name)
            if not _agrees(wanted, found):
                raise
            return found
        return created

    def upload(
        self,
        name: str,
        source: Any,
        *,
        definition: Mapping[str, Any] | None = None,
        mode: Literal["full", "append"] = "full",
        overlap: Literal["refuse", "accept"] = "refuse",
        dry_run: bool = False,
        progress: bool | Show = False,
        **reading: Any,
    ) -> Answer:
        """Upload a file or a table as the next version of a dataset, piece by piece from the disk.

        Parameters
        ----------
        name : str
            The dataset.
        source : path, bytes or table
            A file of any kind that the service reads, its content, or a table of polars, pandas or Arrow.
        definition : mapping, optional
            Defines the dataset first, as :meth:`create` does.
        mode : {"full", "append"}
            Whether the version is this data alone, or what there is and this.
        overlap : {"refuse", "accept"}
            What becomes of an append with rows that may be there already.
        dry_run : bool
            Check and report, and store nothing.
        progress : bool or callable
            True shows a bar on a terminal or in a notebook; a function is given :class:`Progress` in bytes.
        **reading
            What is known of the file, as ``delimiter=";"`` or ``sheet="Sales"``.

        Returns
        -------
        dict
            ``version``, and in ``report`` what was found in the data.

        Raises
        ------
        InvalidContent
            The data has faults: all are counted, the first hundred are in ``faults``.
        Conflict
            An append has rows that may be there already.

        Examples
        --------
        >>> outcome = client.datasets.upload("shop", "examples/shop.csv", definition={"frequency": "D"})
        >>> outcome["version"], outcome["report"]["series"]
        (1, 30)
        """
        if definition is not None:
            self.create(name, **definition)
        stated = {"mode": mode, "overlap": overlap, "dry_run": dry_run or None, **reading}
        with _opened(source) as (file, kind), shown(progress) as show:
            size = file.seek(0, os.SEEK_END)

            def pieces() -> Iterator[bytes]:
                sent = file.seek(0)
                while piece := file.read(PIECE_BYTES):
                    yield piece
                    sent += len(piece)
                    show(_sent(sent, size))

            outcome: Answer = self._wire.call(
                "POST",
                f"{_path(name)}/versions",
                params=stated,
                content=pieces,
                headers={"Content-Type": kind, "Content-Length": str(size)},
                timeout=max(READING_SECONDS, self._wire.timeout),
            )
        return outcome

    def get(self, name: str) -> Answer:
        """Return a dataset's definition and the number of its newest version, or raise NotFound."""
        found: Answer = self._wire.call("GET", _path(name))
        return found

    def list(self) -> Iterator[Answer]:
        """Yield all datasets by name."""
        return self._wire.pages("/v1/datasets")

    def versions(self, name: str) -> Iterator[Answer]:
        """Yield a dataset's versions with the reports of their uploads, newest first."""
        return self._wire.pages(f"{_path(name)}/versions")

    def delete(self, name: str) -> None:
        """Delete a dataset for good; raise Conflict while a job or a model uses it."""
        delete(self._wire, _path(name))


def delete(wire: Wire, path: str) -> None:
    """Delete what is under the path, once: it may be gone already where an answer was lost."""
    try:
        wire.call("DELETE", path)
    except NotFound as error:
        if not error.maybe_done:
            raise


def _path(name: str) -> str:
    return f"/v1/datasets/{quote(name, safe='')}"


def _agrees(wanted: Any, found: Any) -> bool:
    """Whether all that is wanted is found; what was left to defaults may be anything."""
    if isinstance(wanted, Mapping) and isinstance(found, Mapping):
        return all(key in found and _agrees(value, found[key]) for key, value in wanted.items())
    return bool(wanted == found)


@contextmanager
def _opened(source: Any) -> Iterator[tuple[IO[bytes], str]]:
    """Yield the bytes to send as a file, and their media type."""
    if isinstance(source, str | os.PathLike):
        with Path(source).open("rb") as file:
            yield file, "application/octet-stream"
    elif isinstance(source, bytes | bytearray | memoryview):
        yield io.BytesIO(source), "application/octet-stream"
    else:
        frame = as_polars(source)
        with tempfile.TemporaryFile() as file:
            frame.write_parquet(file)
            yield file, "application/vnd.apache.parquet"


def _sent(sent: int, size: int) -> Progress:
    task = "upload" if sent < size else "checking"
    return Progress(task, sent, size, f"{sent / 1e6:.1f} of {size / 1e6:.1f} MB")
