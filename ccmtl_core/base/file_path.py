"""Check paths that callers pass, and write files that appear whole or not at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from ccmtl_core.base.exceptions import ParameterError


def checked_path(path: object) -> Path:
    """Return the path, or raise a ParameterError if it cannot be the name of a file."""
    name = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(name, str):
        raise ParameterError(f"a path must be text or a Path, not {path!r}")
    if name == "" or "\0" in name:
        raise ParameterError(f"a path must name a file; {name!r} does not")
    return Path(name)


def checked_output(path: object) -> Path:
    """Return where to write a file, following symbolic links; a folder or a device is a ParameterError."""
    given = checked_path(path)
    target = Path(os.path.realpath(given))
    try:
        mode = given.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        if not target.parent.is_dir():
            raise ParameterError(f"the folder of {given} does not exist") from None
        return target
    if stat.S_ISDIR(mode):
        raise ParameterError(f"{given} is a folder; give the name of a file")
    if not stat.S_ISREG(mode):
        raise ParameterError(f"{given} is a pipe, a socket or a device; give the name of a file")
    return target


@contextmanager
def whole_file(path: object) -> Iterator[BinaryIO]:
    """Open a file for writing that appears under its name at the end of the block, or not at all.

    An OSError names the path as it was given, and not the temporary file.
    """
    given, target = checked_path(path), checked_output(path)
    temporary = target.with_name(f".ccmtl-{uuid4().hex}")
    try:
        try:
            with temporary.open("xb") as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(temporary, target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(given)) from error
