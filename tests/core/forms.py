"""The two forms of statistics, for tests of what both do."""

from __future__ import annotations

from typing import TypeAlias

import pytest

from ccmtl_core import SufficientStatistics, TriangularStatistics

Form: TypeAlias = type[SufficientStatistics] | type[TriangularStatistics]
Statistics: TypeAlias = SufficientStatistics | TriangularStatistics
FORMS = [SufficientStatistics, TriangularStatistics]
every_form = pytest.mark.parametrize("form", FORMS)
