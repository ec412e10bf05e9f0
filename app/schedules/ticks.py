"""When a schedule's times come: cron expressions on the clocks of a time zone."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

from app.http.names import hint

FIELDS = "five fields (minute, hour, day, month, day of the week), such as `30 2 * * *` or `0 4 * * MON`"

_N_VALUES = {"minutes": 60, "hours": 24, "days": 31, "months": 12, "days of the week": 7}
_OF_THE_MACHINE = {"localtime", "posixrules", "Factory"}
"""Files among those of time zones that are none: what they mean differs from machine to machine."""


def next_tick(cron: str, time_zone: str, after: datetime) -> datetime | None:
    """Return the first time of a schedule after a moment.

    Where clocks are put forward, a time of the day that is left out comes when they are; where they are put
    back, one that comes twice counts once, the first time. Expressions whose minute or hour begins with ``*``
    simply go on, as in Debian's cron.

    Parameters
    ----------
    cron
        An expression of five fields.
    time_zone
        An IANA name.
    after
        A moment, with a time zone.

    Returns
    -------
    datetime or None
        In UTC; None if there is none in fifty years.

    Raises
    ------
    ValueError
        The expression cannot be read.
    KeyError
        There is no such time zone (any more).

    Examples
    --------
    >>> summer_begins = datetime(2026, 3, 28, 12, tzinfo=UTC)
    >>> next_tick("30 2 * * *", "Europe/Berlin", summer_begins)  # 2:30 is left out, 3:00 is not
    datetime.datetime(2026, 3, 29, 1, 0, tzinfo=datetime.timezone.utc)
    """
    if len(cron.split()) != 5:
        raise ValueError(f"must have {FIELDS}")
    try:
        ticks = CronSim(cron, after.astimezone(ZoneInfo(time_zone)))
    except CronSimError as error:
        raise ValueError(f"cannot be read ({error}): it must have {FIELDS}") from None
    moments = (tick.astimezone(UTC) for tick in ticks)
    # While an hour comes the second time, times in it that came the first time are still found.
    return next((moment for moment in moments if moment > after), None)


def fault_of_steps(cron: str) -> str | None:
    """Return what is wrong with the steps of an expression that can be read, or None."""
    for field, (name, n_values) in zip(cron.split(), _N_VALUES.items(), strict=True):
        for term in field.split(","):
            step = term.partition("/")[2]
            if step and int(step) > n_values:
                return f"cannot go on in steps of {step} {name}, as there are {n_values}"
    return None


def fault_of_zone(name: str) -> str | None:
    """Return what is wrong with the name of a time zone, or None."""
    if name in _zones():
        return None
    near = hint(name, _zones())
    return "there is no such time zone; " + (near if near.startswith("did") else "for example: Europe/Berlin")


@cache
def _zones() -> set[str]:
    return available_timezones() - _OF_THE_MACHINE
