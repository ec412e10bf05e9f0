"""When times come, also where clocks are changed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from app.schedules.ticks import fault_of_steps, fault_of_zone, next_tick

BERLIN = "Europe/Berlin"


def ticks(cron: str, zone: str, start: str, n: int) -> list[str]:
    """The next times after a local one, in UTC, as minutes of a day."""
    moment, found = datetime.fromisoformat(start).replace(tzinfo=ZoneInfo(zone)), []
    for _ in range(n):
        following = next_tick(cron, zone, moment)
        assert following is not None
        moment = following
        found.append(moment.strftime("%d %H:%M"))
    return found


def test_each_night_by_the_clocks_of_a_zone() -> None:
    assert ticks("30 2 * * *", BERLIN, "2026-01-01T02:30", 2) == ["02 01:30", "03 01:30"]
    assert ticks("30 2 * * *", "UTC", "2026-01-01T02:29:59", 1) == ["01 02:30"]
    assert ticks("0 4 * * MON", "Asia/Tokyo", "2026-01-01T00:00", 2) == ["04 19:00", "11 19:00"]


def test_a_time_that_is_left_out_comes_when_clocks_are_put_forward() -> None:
    """On March 29 clocks go from 2:00 to 3:00, which is 1:00 in UTC."""
    assert ticks("30 2 * * *", BERLIN, "2026-03-28T12:00", 3) == ["29 01:00", "30 00:30", "31 00:30"]
    assert ticks("30 2 * * *", BERLIN, "2026-03-29T03:00", 1) == ["30 00:30"]


def test_a_time_that_comes_twice_counts_once_the_first_time() -> None:
    """On October 25 clocks go from 3:00 back to 2:00, which is 1:00 in UTC."""
    assert ticks("30 2 * * *", BERLIN, "2026-10-24T12:00", 2) == ["25 00:30", "26 01:30"]
    in_the_second_hour = datetime(2026, 10, 25, 1, 10, tzinfo=UTC)
    assert next_tick("30 2 * * *", BERLIN, in_the_second_hour) == datetime(2026, 10, 26, 1, 30, tzinfo=UTC)


@pytest.mark.parametrize("start", ["2026-03-28T23:00", "2026-10-24T23:00"])
def test_what_comes_all_the_time_goes_on_whatever_clocks_do(start: str) -> None:
    moment = datetime.fromisoformat(start).replace(tzinfo=ZoneInfo(BERLIN)).astimezone(UTC)
    found = [moment]
    for _ in range(20):
        following = next_tick("*/30 * * * *", BERLIN, found[-1])
        assert following is not None
        found.append(following)
    assert {later - earlier for earlier, later in pairwise(found)} == {timedelta(minutes=30)}


def test_a_time_that_never_comes_is_none() -> None:
    assert next_tick("* * */20 * 1L", "UTC", datetime(2026, 1, 1, tzinfo=UTC)) is None


@pytest.mark.parametrize(
    "cron", ["", "* * * *", "0 * * * * *", "61 * * * *", "a b c d e", "0 0 30 2 *", "@daily"]
)
def test_what_is_no_expression_of_five_fields_is_refused(cron: str) -> None:
    with pytest.raises(ValueError, match="five fields"):
        next_tick(cron, "UTC", datetime(2026, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("cron", "fault"),
    [
        ("*/99999999999999999999 * * * *", "steps of 99999999999999999999 minutes, as there are 60"),
        ("*/90 * * * *", "steps of 90 minutes, as there are 60"),
        ("0 0-12/3,13-23/25 * * *", "steps of 25 hours, as there are 24"),
        ("0 0 1/32 * *", "steps of 32 days, as there are 31"),
        ("0 0 1 */13 *", "steps of 13 months, as there are 12"),
        ("0 0 * * */8", "steps of 8 days of the week, as there are 7"),
    ],
)
def test_a_step_beyond_the_values_of_its_field_is_told(cron: str, fault: str) -> None:
    assert fault_of_steps(cron) == f"cannot go on in {fault}"


@pytest.mark.parametrize("cron", ["*/60 */24 */31 */12 */7", "5-59/15,7 1 * * MON", "0 0 L * 1#2"])
def test_other_steps_are_taken(cron: str) -> None:
    assert fault_of_steps(cron) is None


def test_a_wrong_zone_is_told_with_a_near_one() -> None:
    assert fault_of_zone(BERLIN) is None
    assert "'Europe/Berlin'" in (fault_of_zone("Europe/Berlim") or "")
    for wrong in ("CEST", "../UTC", "/etc/localtime", "localtime", "posixrules", "Factory", "", "x" * 100):
        assert "time zone" in (fault_of_zone(wrong) or "")
