"""A failure of polars in, the operating system's own error out where that is what failed.

Reader and writer wrap the system's refusal (a full disk, a folder that is gone) and keep its number only in
the text. Taken for the file's fault, it would be told to the caller as one.
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
