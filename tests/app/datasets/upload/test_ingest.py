"""Rows of an upload become values of periods: times and zones, sums and means, fills."""

from __future__ import annotations

import pytest

from tests.app.datasets.conftest import Shop, faults


def test_times_inside_a_period_are_counted_when_nothing_is_aggregated(shop: Shop) -> None:
    text = "unique_id,ds,y\na,2000-01-03,1\na,2000-01-11,1\na,2000-01-19T05:00,1\n"
    report = shop.accepted(shop.series(frequency="W"), text)
    assert [(w["code"], w["count"]) for w in report["warnings"]] == [
        ("moved_to_period_start", 2),
        ("constant_series", 1),
        ("short_series", 1),
    ]
    assert (report["periods"], report["first"], report["last"]) == (3, "2000-01-03", "2000-01-17")


def test_hours_are_reported_with_their_time(shop: Shop) -> None:
    report = shop.accepted(
        shop.series(frequency="h"), "unique_id,ds,y\na,2000-01-01 23:59,1\na,2000-01-02T01:00:01.5,1\n"
    )
    assert (report["first"], report["last"]) == ("2000-01-01T23:00:00", "2000-01-02T01:00:00")
    assert report["periods"] == 3


def test_hours_with_a_zone_become_utc(shop: Shop) -> None:
    text = "unique_id,ds,y\na,2000-01-01T23:30:00-02:00,1\na,2000-01-01T00:30:00Z,2\n"
    report = shop.accepted(shop.series(frequency="h"), text)
    assert report["time_zone"] == "UTC"
    assert (report["first"], report["last"]) == ("2000-01-01T00:00:00", "2000-01-02T01:00:00")


@pytest.mark.parametrize(
    ("frequency", "starts"),
    [
        ("D", ["2024-03-30T00:00+00:00", "2024-03-31T00:00Z", "2024-04-01T00:00:00+01:00"]),
        ("D", ["2024-10-26T00:00+0100", "2024-10-27T00:00+01", "2024-10-28T00:00+00:00"]),
        ("W", ["2024-03-25 00:00-05:00", "2024-04-01 00:00-04:00", "2024-04-08 00:00-04:00"]),
        ("MS", ["2024-03-01T00:00:00.5+13:45", "2024-04-01T00:00:00.5+13:45", "2024-05-01T00:00:00.5+12:45"]),
    ],
)
def test_days_weeks_and_months_with_a_zone_keep_their_local_date(
    shop: Shop, frequency: str, starts: list[str]
) -> None:
    text = "unique_id,ds,y\n" + "".join(f"a,{start},1\n" for start in starts)
    report = shop.accepted(shop.series(frequency=frequency, fill={"method": "zero", "start": "series"}), text)
    assert (report["time_zone"], report["periods"], report["filled_periods"]) == ("local", 3, 0)
    assert (report["first"], report["last"]) == (starts[0][:10], starts[-1][:10])


def test_times_with_and_without_a_zone_do_not_mix(shop: Shop) -> None:
    text = "unique_id,ds,y\na,2000-01-01T00:00Z,1\na,2000-01-02,2\na,2000-01-04T00:00+01:00,2\n"
    assert faults(shop.refused(shop.series(), text)) == [("mixed_time_zones", 2, "ds", None)]


def test_sums_and_means_of_several_rows_in_a_period(shop: Shop) -> None:
    text = "unique_id,ds,y\na,2000-01-01,1\nb,2000-01-01,7\na,2000-01-01,2\n"
    for aggregation in ("sum", "mean"):
        report = shop.accepted(shop.series(aggregation=aggregation), text)
        assert (report["rows"], report["aggregated_rows"], report["version"]["values"]) == (3, 1, 2)
    problem = shop.refused(shop.series(), text)
    assert faults(problem) == [("duplicate_period", 3, None, "a")]
    message = problem["errors"][0]["message"]
    assert all(word in message for word in ("row 1", "2000-01-01", "`duplicates`"))


def test_a_sum_beyond_float64_is_refused(shop: Shop) -> None:
    text = "unique_id,ds,y\na,2000-01-01,1e308\na,2000-01-01,1e308\n"
    problem = shop.refused(shop.series(aggregation="sum"), text)
    assert faults(problem) == [("overflow", None, None, "a")]
    assert "2000-01-01" in problem["errors"][0]["message"]


@pytest.mark.parametrize(("start", "n_filled"), [("dataset", 5), ("series", 3)])
def test_the_fill_policy_is_counted(shop: Shop, start: str, n_filled: int) -> None:
    text = "unique_id,ds,y\na,2000-01-01,1\na,2000-01-04,1\nb,2000-01-03,1\n"
    report = shop.accepted(shop.series(fill={"method": "zero", "start": start}), text)
    assert report["filled_periods"] == n_filled


def test_a_mistyped_year_does_not_ask_for_billions_of_zeros(shop: Shop) -> None:
    text = "unique_id,ds,y\n" + "".join(f"{i},2000-01-01,1\n" for i in range(100)) + "0,9000-01-01,1\n"
    problem = shop.refused(shop.series(frequency="h", fill={"method": "zero"}), text)
    assert faults(problem) == [("too_many_filled_periods", 101, "ds", "9000-01-01T00:00:00")]
    assert (
        "farthest from the others is 9000-01-01T00:00:00, of series '0': is"
        in problem["errors"][0]["message"]
    )


def test_a_mistyped_year_of_an_earlier_upload_is_named_by_its_series(shop: Shop) -> None:
    name = shop.series(frequency="h", fill={"method": "zero"})
    shop.accepted(name, "unique_id,ds,y\nearly,1000-01-01,1\na,2000-01-01,1\na,2000-01-02,1\n")
    text = "unique_id,ds,y\n" + "".join(f"{i},2000-01-01,1\n" for i in range(100))
    (fault,) = shop.upload(name, text, mode="append").json()["errors"]
    assert (fault["code"], fault["row"]) == ("too_many_filled_periods", None)
    assert fault["value"] == "1000-01-01T00:00:00"
    assert "of series 'early' in an earlier upload" in fault["message"]
