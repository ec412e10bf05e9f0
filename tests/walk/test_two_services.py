"""Two services on one database and one data folder share the work and see each other's."""

from __future__ import annotations

import pytest

from tests.support.database_kinds import quickly_on
from tests.support.processes import wait_until
from tests.support.service import (
    create_daily_dataset,
    sales_csv,
    upload_csv,
    versions_of,
    wait_for_end,
)
from tests.walk.conftest import StartService

pytestmark = [quickly_on("postgresql"), pytest.mark.landing]


def test_each_job_is_run_once_and_each_change_is_seen_by_both(start_service: StartService) -> None:
    with start_service(job_poll_seconds=0.1) as one, start_service(job_poll_seconds=0.1) as other:
        create_daily_dataset(one.client, "shared")
        upload_csv(other.client, "shared", sales_csv(10, 30))
        request = {"dataset": "shared", "model": "shared", "fusion_strength": 1.0, "lags": 3}
        ids = [
            client.post("/v1/training-jobs", json=request).json()["id"]
            for client in (one.client, other.client)
        ]
        ended = [wait_for_end(one.client, job_id) for job_id in ids]
        assert [(job["state"], job["attempt"]) for job in ended] == [("succeeded", 1)] * 2
        assert sorted(versions_of(other.client, "shared")) == [1, 2]
        forecast = "/v1/models/shared/forecast?unique_id=P000001"
        assert one.client.get(forecast).json() == other.client.get(forecast).json()
        assert one.client.delete("/v1/models/shared").status_code == 204
        wait_until(lambda: other.client.get(forecast).status_code == 404, "the deletion seen by the other")
