"""Schedules are made, paused and deleted."""

from __future__ import annotations

import pytest

from ccmtl_client import Client, InvalidContent, NotFound


def test_a_schedule_is_made_listed_paused_resumed_and_deleted(client: Client, sold: str) -> None:
    training = {"dataset": sold, "model": "by-night", "horizon": 7}
    made = client.schedules.put("by-night", training, cron="0 4 * * MON")
    assert (made["cron"], made["training"]["horizon"]) == ("0 4 * * MON", 7)
    moved = client.schedules.put("by-night", training, daily="02:30", time_zone="Europe/Berlin")
    assert client.schedules.get("by-night") == moved
    assert "by-night" in [schedule["name"] for schedule in client.schedules.list()]
    paused = client.schedules.pause("by-night")
    assert paused == {**moved, "enabled": False, "next_run_at": None}
    assert client.schedules.resume("by-night") == moved
    assert list(client.jobs.list(schedule="by-night")) == []
    client.schedules.delete("by-night")
    with pytest.raises(NotFound):
        client.schedules.get("by-night")


def test_a_training_that_cannot_work_is_refused_with_every_reason(client: Client, sold: str) -> None:
    with pytest.raises(InvalidContent) as caught:
        client.schedules.put("never", {"dataset": sold, "model": "x", "horizon": 0}, daily="25:00")
    assert {fault["location"] for fault in caught.value.faults} == {"body.daily", "body.training.horizon"}
