"""Tell a full disk or a folder that is gone from a faulty file, in the failures of polars.

Polars wraps what the operating system refused, and keeps its number only in the text.
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
