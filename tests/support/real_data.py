"""Where the public data sets lie that may not be passed on: School, Ta-Feng, Sales, Walmart."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

DATA = Path(os.environ.get("CCMTL_TEST_DATA") or Path(__file__).parents[3] / "shared" / "data")
SCHOOL = DATA / "school" / "school.mat"
TA_FENG = DATA / "ta_feng" / "ta_feng.csv.zip"


def needs(path: Path) -> pytest.MarkDecorator:
    """Skip a test where a file or folder of the data sets is missing."""
    return pytest.mark.skipif(
        not path.exists(), reason=f"{path} is missing; CCMTL_TEST_DATA names the folder"
    )
