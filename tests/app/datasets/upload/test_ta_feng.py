"""The real Ta-Feng transactions: accepted as they come, with the counts that were known beforehand."""

from __future__ import annotations

import zipfile

import pytest

from tests.app.datasets.conftest import Shop
from tests.support.real_data import TA_FENG, needs


@needs(TA_FENG)
def test_the_real_file_is_accepted_as_it_comes(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(TA_FENG) as archive:
        content = archive.read(archive.namelist()[0])
    settings = shop.app.state.settings.model_copy(update={"max_upload_bytes": len(content)})
    monkeypatch.setattr(shop.app.state, "settings", settings)
    name = shop.series(
        columns={"unique_id": "PRODUCT_ID", "ds": "TRANSACTION_DT", "y": "AMOUNT"},
        ds_format="%m/%d/%Y",
        aggregation="sum",
        fill={"method": "zero"},
    )
    report = shop.accepted(name, content)
    assert report["rows"] == 817_741
    assert (report["series"], report["periods"]) == (23_812, 120)
    assert (report["first"], report["last"]) == ("2000-11-01", "2001-02-28")
    assert report["version"]["values"] + report["filled_periods"] == 23_812 * 120
    assert report["rows"] - report["aggregated_rows"] == report["version"]["values"]
    told = {one["code"]: one["count"] for one in report["warnings"]}
    assert told == {"constant_series": 5714, "outliers": 1623, "short_series": 11569}
