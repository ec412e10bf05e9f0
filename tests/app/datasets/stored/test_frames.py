"""What was uploaded is what training reads: ids as they are, values and features to the last bit."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import select

from app.datasets.stored import frames
from app.datasets.stored.frames import LoadedPanel, load, read_segments
from app.http.errors import AppError, NotFound
from app.persistence.models import Dataset, DatasetVersion
from ccmtl_core import TaskDataset
from ccmtl_core.forecasting import Frequency
from tests.app.datasets.conftest import Shop
from tests.support.examples import FEW

finite = st.floats(allow_nan=False, allow_infinity=False)
any_id = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=60)


def newest_id(shop: Shop, name: str) -> str:
    with shop.app.state.database.read() as session:
        query = select(DatasetVersion.id).join(Dataset).where(Dataset.name == name)
        return str(session.scalars(query.order_by(DatasetVersion.number.desc()).limit(1)).one())


def panel_of(shop: Shop, name: str) -> LoadedPanel:
    loaded = load(shop.app.state.database, shop.app.state.storage, newest_id(shop, name))
    assert isinstance(loaded, LoadedPanel)
    return loaded


def tasks_of(shop: Shop, name: str) -> TaskDataset:
    loaded = load(shop.app.state.database, shop.app.state.storage, newest_id(shop, name))
    assert isinstance(loaded, TaskDataset)
    return loaded


def quoted(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    file = io.StringIO()
    csv.writer(file, quoting=csv.QUOTE_ALL).writerows([header, *rows])
    return file.getvalue()


@FEW
@given(st.dictionaries(any_id, finite, min_size=1, max_size=20))
def test_ids_and_values_come_back_as_they_were_sent(shop: Shop, sent: dict[str, float]) -> None:
    name = shop.series()
    text = quoted(["unique_id", "ds", "y"], [(key, "2000-01-01", repr(y)) for key, y in sent.items()])
    shop.accepted(name, text)
    panel = panel_of(shop, name).panel
    assert panel.unique_ids == tuple(sorted(sent, key=str.encode))
    assert panel.values.tolist() == [sent[key] for key in panel.unique_ids]


@FEW
@given(st.lists(st.tuples(st.sampled_from("ab"), finite, finite, finite), min_size=1, max_size=20))
def test_regression_rows_come_back_as_they_were_sent(
    shop: Shop, sent: list[tuple[str, float, float, float]]
) -> None:
    name = shop.regression(["price", "y"], y="target")
    rows = [(key, *map(repr, numbers)) for key, *numbers in sent]
    shop.accepted(name, quoted(["unique_id", "target", "price", "y"], rows))
    data = tasks_of(shop, name)
    ordered = sorted(sent, key=lambda row: row[0])
    assert data.task_ids == tuple(sorted({key for key, *_ in sent}))
    assert data.feature_names == ("price", "y")
    assert data.y.tolist() == [y for _, y, _, _ in ordered]
    assert data.X.tolist() == [[price, other] for _, _, price, other in ordered]
    assert data.n_samples.tolist() == [sum(key == task for key, *_ in sent) for task in data.task_ids]


@pytest.mark.parametrize(
    ("start", "n_filled", "values"),
    [("dataset", 3, [1.0, 0.0, 2.0, 0.0, 0.0, 5.0]), ("series", 1, [1.0, 0.0, 2.0, 5.0])],
)
def test_a_panel_is_filled_as_the_report_said(
    shop: Shop, start: str, n_filled: int, values: list[float]
) -> None:
    name = shop.series(fill={"method": "zero", "start": start}, frequency="W")
    text = "unique_id,ds,y\na,2000-01-03,1\na,2000-01-17,2\nb,2000-01-20,5\n"
    assert shop.accepted(name, text)["filled_periods"] == n_filled
    loaded = panel_of(shop, name)
    assert (loaded.n_filled, loaded.panel.values.tolist()) == (n_filled, values)
    assert loaded.panel.frequency is Frequency.WEEK
    assert loaded.definition.fill is not None


def test_gaps_stay_where_no_fill_was_named(shop: Shop) -> None:
    name = shop.series()
    shop.accepted(name, "unique_id,ds,y\na,2000-01-03,1\na,2000-01-17,2\n")
    loaded = panel_of(shop, name)
    assert (loaded.n_filled, loaded.panel.values.tolist()) == (0, [1.0, 2.0])


def test_a_damaged_segment_is_not_read(shop: Shop) -> None:
    name = shop.series()
    before = shop.files()
    shop.accepted(name, "unique_id,ds,y\na,2000-01-03,1\ndamaged,2000-01-04,77\n")
    (path,) = shop.files() - before
    with open(path, "r+b") as file:
        file.seek(40)
        file.write(b"\xff\xfe")
    with pytest.raises(AppError, match="has changed"):
        panel_of(shop, name)


@pytest.mark.parametrize("when", ["before the rows are looked up", "before the files are opened"])
def test_a_dataset_deleted_meanwhile_is_not_found_rather_than_damaged(
    shop: Shop, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = shop.series()
    shop.accepted(name, "unique_id,ds,y\na,2000-01-03,1\nfleeting,2000-01-04,78\n")
    database, storage, version_id = shop.app.state.database, shop.app.state.storage, newest_id(shop, name)

    def delete_then_read(*arguments: Any) -> Any:
        assert shop.client.delete(f"/v1/datasets/{name}").status_code == 204
        return read_segments(*arguments)

    if when == "before the files are opened":
        monkeypatch.setattr(frames, "read_segments", delete_then_read)
    else:
        assert shop.client.delete(f"/v1/datasets/{name}").status_code == 204
    with pytest.raises(NotFound, match="was deleted") as refusal:
        load(database, storage, version_id)
    assert refusal.value.problem.code == "dataset_not_found"


BESIDE = {"columns": {"future": ["price"], "past": ["stock"], "attributes": ["kind"]}}


def test_columns_beside_values_and_attributes_come_back_over_appends(shop: Shop) -> None:
    name = shop.series(**BESIDE, aggregation="sum")
    shop.accepted(
        name,
        "unique_id,ds,y,price,stock,kind\n"
        "a/1,2025-01-01,2,1.5,,tea\na/1,2025-01-01,3,2.5,7,tea\na/1,2025-01-02,3,4,7,\nb,2025-01-01,1,,2,\n",
    )
    later = "unique_id,ds,y,price,stock,kind\na/1,2025-01-03,5,6,1,\nb,2025-01-02,1,3,9,jam\n"
    shop.accepted(name, later, mode="append")
    loaded = panel_of(shop, name)
    assert loaded.panel.values.tolist() == [5.0, 3.0, 5.0, 1.0, 1.0]
    columns = loaded.columns
    assert columns is not None
    assert (columns.names, columns.ahead) == (("price", "stock"), ("price",))
    found = columns.at(columns.places(["a/1", "b"])[[0, 0, 0, 1, 1]], loaded.panel.period)
    assert np.nan_to_num(found, nan=-1.0).tolist() == [[2, 7], [4, 7], [6, 1], [-1, 2], [3, 9]]
    assert loaded.attributes is not None
    assert loaded.attributes.rows() == [("a/1", "tea"), ("b", "jam")]


def test_an_attribute_that_changes_within_a_product_is_named(shop: Shop) -> None:
    name = shop.series(**BESIDE)
    text = "unique_id,ds,y,price,stock,kind\na,2025-01-01,2,1,1,tea\na,2025-01-02,2,x,1,jam\n"
    problem = shop.refused(name, text)
    found = [(fault["code"], fault["row"], fault["column"]) for fault in problem["errors"]]
    assert found == [("unparseable_number", 2, "price")]
    problem = shop.refused(name, text.replace("x,", "1,"))
    found = [(fault["code"], fault["row"], fault["column"]) for fault in problem["errors"]]
    assert found == [("attribute_changes", 2, "kind")]
