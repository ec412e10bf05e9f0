"""How many examples hypothesis tries."""

from __future__ import annotations

from hypothesis import settings

FEW = settings(max_examples=settings.default.max_examples // 4)
"""For properties whose examples take uploads or a process each.

``make test-all`` tries four times as many of all properties.
"""
