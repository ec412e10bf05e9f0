"""Tell what the operating system refused from what is wrong with a file, in the failures of polars.

The reader and the writer wrap such errors (a full disk, a folder that is gone) and keep the number only in
the text. Without this they would be reported to the caller as faults of the file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from polars.exceptions import PolarsError


@contextmanager
def naming_system_errors() -> Iterator[None]:
    """Raise what the system refused as an `OSError` with its number; let everything else through."""
    try:
        yield
    except (PolarsError, OSError) as error:
        number = re.search(r"\(os error (\d+)\)", str(error))
        if number is None or getattr(error, "errno", None) is not None:
            raise
        raise OSError(int(number[1]), os.strerror(int(number[1]))) from error
