"""How many requests a key may send: a bucket that fills up steadily, kept in each API process."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from app.http.errors import TooManyRequests


class Rates:
    """A bucket of a minute's requests for each key; ``default`` is for keys that name no number."""

    def __init__(self, default: int | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._default = default
        self._clock = clock
        self._buckets: dict[str, tuple[float, float]] = {}  # by the key's id: requests left, and when

    def take(self, key_id: str, requests_per_minute: int | None) -> None:
        """Count a request, or raise TooManyRequests; for one thread."""
        rate = requests_per_minute or self._default
        if rate is None:
            return
        now = self._clock()
        left, when = self._buckets.get(key_id, (float(rate), now))
        left = min(left + (now - when) * rate / 60.0, float(rate))
        if left < 1.0:
            self._buckets[key_id] = left, now
            seconds = math.ceil((1.0 - left) * 60.0 / rate)
            raise TooManyRequests(
                "too_many_requests",
                f"This key may send {rate} requests a minute; send the next in {seconds} s.",
                headers={"Retry-After": str(seconds)},
            )
        self._buckets[key_id] = left - 1.0, now
