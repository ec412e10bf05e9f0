"""How many examples hypothesis tries."""

from __future__ import annotations

from hypothesis import settings

FEW = settings(max_examples=12 if settings.default.max_examples <= 100 else 100)
"""For properties whose examples take uploads or a process each; ``make test-all`` tries the larger number."""
