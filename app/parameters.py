"""Path and query parameters that several slices share."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query

NO_NUL = r"^[^\x00]*$"  # PostgreSQL's text cannot hold it

ModelName = Annotated[str, Path(max_length=200, pattern=NO_NUL, description="The model's name.")]
VersionNumber = Annotated[int, Path(ge=1, le=2**31 - 1, description="Number of the version, from 1.")]
Limit = Annotated[int, Query(ge=1, le=500, description="Most items on one page.")]
Cursor = Annotated[
    str | None, Query(max_length=200, pattern=NO_NUL, description="`next_cursor` of the page before.")
]
NumberCursor = Annotated[
    int | None, Query(ge=1, le=2**31 - 1, description="`next_cursor` of the page before.")
]
