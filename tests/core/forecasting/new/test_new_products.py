"""Products that a forecaster has not seen: forecasts from their like, of every length of history."""

from __future__ import annotations

import math
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from ccmtl_core import DataError, ModelChoices, ParameterError
from ccmtl_core.base.types import FloatArray
from ccmtl_core.forecasting import (
    ForecastModel,
    NewProducts,
    RowFeatures,
    SeriesColumns,
    SeriesPanel,
    fit_forecaster,
    forecast_all,
    new_products,
    with_attributes,
)

ROWS = RowFeatures(windows=(1, 4), seasons=((4, 1),))
SEASONS = {"a": [1.0, 2.0, 4.0, 1.0], "b": [4.0, 1.0, 1.0, 2.0]}
N = 48
H = 3
CHOICES = ModelChoices(fit_intercept=True, metric="mahalanobis")


def sales(kind: str, size: float, n: int = N, seed: int = 0) -> FloatArray:
    noise = 1.0 + 0.05 * np.random.default_rng(seed).normal(size=n)
    return np.tile(SEASONS[kind], n)[:n] * size * noise


def panel_of(series: dict[str, Any], end: int = N) -> SeriesPanel:
    """Series that all end before the period ``end``."""
    offsets = np.concatenate([[0], np.cumsum([len(own) for own in series.values()])])
    period = np.concatenate([np.arange(end - len(own), end) for own in series.values()])
    return SeriesPanel(tuple(series), offsets, period, np.concatenate(list(series.values())), "D")  # type: ignore[arg-type]


def table_of(**kind: str | None) -> pl.DataFrame:
    """Those of the forecaster, whose ids begin with their kind, and others."""
    rows: dict[str, str | None] = {name: name[0] for name in KNOWN} | kind
    return pl.DataFrame({"unique_id": list(rows), "kind": pl.Series(list(rows.values()), dtype=pl.String)})


KNOWN = {f"{kind}{i}": sales(kind, 10.0 * (1 + i), seed=i) for kind in "ab" for i in range(6)}


@pytest.fixture(scope="module")
def forecaster() -> ForecastModel:
    return fit_forecaster(panel_of(KNOWN), H, rows=ROWS, choices=CHOICES, fusion_strength=1.0)


def yhat_of(found: NewProducts, name: str, h: int | None = None) -> list[float]:
    values: list[float] = found.forecast(h).filter(unique_id=name)["yhat"].to_list()
    return values


def test_a_product_without_history_is_forecast_from_those_that_share_its_attributes(
    forecaster: ForecastModel,
) -> None:
    found = new_products(forecaster, table_of(new="a", other="b"))
    frame = found.forecast()
    assert frame.columns == ["unique_id", "ds", "yhat", "status", "like", "n_like"]
    assert frame["ds"].to_list() == [date(1970, 2, 18), date(1970, 2, 19), date(1970, 2, 20)] * 2
    assert frame.filter(unique_id="new").row(0)[3:] == ("from_like", "kind=a", 6)
    for name, kind in (("new", "a"), ("other", "b")):
        expected = 35.0 * np.array(SEASONS[kind])[[0, 1, 2]]
        np.testing.assert_allclose(yhat_of(found, name), expected, rtol=0.1)


def test_a_product_with_one_value_has_its_own_level_and_moves_like_its_like(
    forecaster: ForecastModel,
) -> None:
    panel = panel_of(
        {"new": [1000.0]}
    )  # the last place of the season, where the kind a sells 1, and b sells 2
    for kind, expected in (("a", [1000.0, 2000.0, 4000.0]), ("b", [2000.0, 500.0, 500.0])):
        found = new_products(forecaster, table_of(new=kind), panel=panel)
        np.testing.assert_allclose(yhat_of(found, "new"), expected, rtol=0.15)


def test_own_values_take_the_place_of_what_is_borrowed_as_they_come(forecaster: ForecastModel) -> None:
    later = [sales(kind, 7.0, seed=9)[-5:] for kind in "ab"]
    unlike = new_products(forecaster, table_of(new="a"), panel=panel_of({"new": later[1]}))
    np.testing.assert_allclose(unlike.forecaster.tail[0, -5:], later[1])
    assert yhat_of(unlike, "new")[0] > 1.5 * yhat_of(unlike, "new")[1]  # as b does, not as a


def test_a_product_with_history_finds_its_own_weights() -> None:
    walks = [100.0 + np.cumsum(np.random.default_rng(seed).normal(size=N)) for seed in range(9)]
    known = {name: own for name, own in KNOWN.items() if name[0] == "a"} | {
        f"w{i}": walks[i] for i in range(8)
    }
    model = fit_forecaster(panel_of(known), H, rows=ROWS, choices=CHOICES, fusion_strength=0.01)
    panel = panel_of({"season": sales("a", 5.0, seed=9), "walk": walks[8]})
    found = new_products(model, pl.DataFrame({"unique_id": ["season", "walk"]}), panel=panel).forecaster
    level, season = (ROWS.names.index(name) for name in ("level_1", "season_4_1"))
    seasonal, walking = found.model.weights
    assert seasonal[season] > walking[season] + 0.5
    assert walking[level] > seasonal[level] + 0.5
    np.testing.assert_allclose(found.point_forecasts()[0], 5.0 * np.array(SEASONS["a"])[:3], rtol=0.15)
    assert np.abs(found.point_forecasts()[1] - walks[8][-1]).max() < 3.0


def test_an_unknown_value_of_an_attribute_leads_to_all_products(forecaster: ForecastModel) -> None:
    found = new_products(forecaster, table_of(new="never seen", none=None), panel=panel_of({"bare": [5.0]}))
    assert found.forecaster.unique_ids == ("new", "none", "bare")
    assert found.status == ("from_all",) * 3
    assert found.like == ("",) * 3
    assert found.n_like.tolist() == [12] * 3
    assert np.isfinite(found.forecaster.point_forecasts()).all()


def test_an_attribute_that_tells_nothing_is_not_used() -> None:
    rng = np.random.default_rng(0)
    known = {f"{i}": sales("a", 10.0 + i, seed=i) for i in range(24)}
    model = fit_forecaster(panel_of(known), H, rows=ROWS, choices=CHOICES, fusion_strength=1.0)
    colour = {name: str(rng.integers(6)) for name in [*known, "new"]}
    table = pl.DataFrame({"unique_id": list(colour), "colour": list(colour.values())})
    assert new_products(model, table).status == ("from_all",)


def test_the_level_without_history_is_the_product_of_what_attributes_tell() -> None:
    size = {
        (shop, kind): 10.0 * (1 + shop) * (1 + 4 * ("ab".index(kind))) for shop in range(6) for kind in "ab"
    }
    known = {f"{s}{k}": sales(k, level, seed=s) for (s, k), level in size.items() if (s, k) != (5, "b")}
    model = fit_forecaster(panel_of(known), H, rows=ROWS, choices=CHOICES, fusion_strength=1.0)
    names = [*known, "5b"]
    table = pl.DataFrame(
        {"unique_id": names, "shop": ["large" if n[0] in "345" else "small" for n in names],
         "kind": [n[1] for n in names]}
    )  # fmt: skip
    found = new_products(model, table)
    level = np.mean(SEASONS["b"]) * 5.0 * 45.0  # of the large shops, whose median is 45 to 50
    assert found.forecaster.tail.mean() == pytest.approx(level, rel=0.25)


def test_a_product_of_the_forecaster_with_hardly_any_values_is_new() -> None:
    model = fit_forecaster(
        panel_of({**KNOWN, "thin": [80.0], "none": []}), H, rows=ROWS, choices=CHOICES, fusion_strength=1.0
    )
    found = new_products(model, table_of(thin="a", none="b"))
    assert found.forecaster.unique_ids == ("thin", "none")
    np.testing.assert_allclose(yhat_of(found, "thin"), [80.0, 160.0, 320.0], rtol=0.15)
    assert len(yhat_of(found, "none")) == H


def test_an_all_zero_product_has_a_finite_forecast(forecaster: ForecastModel) -> None:
    for n in (1, H + 1, N):
        found = new_products(forecaster, table_of(new="a"), panel=panel_of({"new": np.zeros(n)}))
        assert yhat_of(found, "new", 9) == [0.0] * 9


def test_like_products_that_sell_nothing_lead_to_nothing() -> None:
    known = {**{name: own for name, own in KNOWN.items() if name[0] == "b"}}
    known |= {f"a{i}": np.zeros(N) for i in range(4)}
    model = fit_forecaster(panel_of(known), H, rows=ROWS, choices=CHOICES, fusion_strength=1.0)
    rows = {name: name[0] for name in known} | {"new": "a"}
    table = pl.DataFrame({"unique_id": list(rows), "kind": list(rows.values())})
    for panel in (None, panel_of({"new": [6.0]})):
        assert np.isfinite(new_products(model, table, panel=panel).forecaster.point_forecasts()).all()


def test_a_forecaster_of_constants_alone_forecasts_their_level() -> None:
    known = {f"a{i}": np.full(12, 5.0) for i in range(4)}
    model = fit_forecaster(panel_of(known), H, rows=ROWS)
    table = pl.DataFrame({"unique_id": ["new"]})
    assert yhat_of(new_products(model, table), "new") == pytest.approx([5.0] * H)


def test_a_constant_product_keeps_its_constant(forecaster: ForecastModel) -> None:
    found = new_products(forecaster, table_of(new="a"), panel=panel_of({"new": [0.1] * (H + 1)}))
    assert yhat_of(found, "new", 7) == [0.1] * 7


@pytest.mark.parametrize("n", [1, 2, H, H + 1, 7, 20, N])
def test_forecasts_are_never_nan(forecaster: ForecastModel, n: int) -> None:
    rng = np.random.default_rng(n)
    odd = {
        "gaps": np.full(n, 3.0),
        "negative": -rng.exponential(size=n),
        "sparse": (rng.random(n) < 0.2) * 9.0,
        "huge": 1e12 * rng.exponential(size=n),
        "tiny": 1e-9 * rng.exponential(size=n),
        "late": rng.exponential(size=n),
    }
    panel = panel_of(odd)
    kept = np.ones(len(panel.period), dtype=np.bool_)
    kept[1 : n - 1 : 2] = False  # of the first series
    offsets = np.concatenate([[0], np.cumsum(np.bincount(panel.series_index[kept], minlength=6))])
    panel = SeriesPanel(panel.unique_ids, offsets, panel.period[kept], panel.values[kept], "D")  # type: ignore[arg-type]
    for features in (ROWS, RowFeatures.for_lags(3)):
        model = forecaster
        if features is not ROWS:
            model = fit_forecaster(panel_of(KNOWN), H, rows=features, choices=CHOICES, fusion_strength=1.0)
        found = new_products(model, table_of(**dict.fromkeys(odd, "a")), panel=panel)
        assert np.isfinite(found.forecaster.point_forecasts(12)).all()
        assert (found.forecaster.point_forecasts(12)[[0, 2, 3, 4, 5]] >= 0.0).all()


def test_values_that_end_earlier_are_forecast_from_the_newest_period_of_all(
    forecaster: ForecastModel,
) -> None:
    old = panel_of({"new": sales("a", 8.0, 30)}, end=N - 8)
    found = new_products(forecaster, table_of(new="a"), panel=old)
    assert found.forecast()["ds"][0] == date(1970, 2, 18)
    newer = new_products(forecaster, table_of(new="a"), panel=panel_of({"new": [3.0]}, end=N + 5))
    assert newer.forecast()["ds"][0] == date(1970, 2, 23)
    assert np.isfinite(newer.forecaster.point_forecasts()).all()


def test_newer_values_of_known_products_count(forecaster: ForecastModel) -> None:
    doubled = {name: 2.0 * own for name, own in KNOWN.items()}
    plain = new_products(forecaster, table_of(new="a"))
    found = new_products(forecaster, table_of(new="a"), panel=panel_of(doubled))
    np.testing.assert_allclose(yhat_of(found, "new"), 2.0 * np.array(yhat_of(plain, "new")), rtol=0.05)


def test_thousands_of_new_products_at_once(forecaster: ForecastModel) -> None:
    names = [f"new/{i}" for i in range(6000)]
    panel = panel_of(
        {name: sales("ab"[i % 2], 1.0 + i, 1 + i % 30, seed=i) for i, name in enumerate(names[:4000])}
    )
    found = new_products(forecaster, table_of(**{n: "ab"[i % 2] for i, n in enumerate(names)}), panel=panel)
    frame = found.forecast(28)
    assert frame["unique_id"].unique(maintain_order=True).to_list() == names
    assert len(frame) == 28 * 6000
    assert frame["status"].unique().to_list() == ["from_like"]
    assert np.isfinite(frame["yhat"].to_numpy()).all()


def test_each_new_product_is_forecast_as_if_it_were_alone(forecaster: ForecastModel) -> None:
    three = {f"new{n}": sales("b", 3.0, n, seed=n) for n in (1, 6, 40)}
    table = table_of(**dict.fromkeys(three, "b"))
    together = new_products(forecaster, table, panel=panel_of(three))
    for name, own in three.items():
        alone = new_products(forecaster, table_of(**{name: "b"}), panel=panel_of({name: own}))
        np.testing.assert_allclose(yhat_of(alone, name), yhat_of(together, name), rtol=1e-9)


def test_attributes_that_a_forecaster_holds_need_not_be_given_again(
    forecaster: ForecastModel, tmp_path: Path
) -> None:
    with_attributes(forecaster, table_of(new="a")).save(tmp_path / "f.npz")
    stored = ForecastModel.load(tmp_path / "f.npz")
    new = pl.DataFrame({"unique_id": ["new"], "kind": ["b"]})
    expected = new_products(forecaster, table_of(new="b")).forecast()
    assert new_products(stored, new).forecast().equals(expected)
    assert new_products(forecaster, new).status == ("from_all",)


def test_columns_beside_the_values_are_passed_on() -> None:
    holiday = (np.arange(N + 20) % 7 == 0).astype(np.float64)
    known = {name: own * (1.0 + holiday[:N]) for name, own in KNOWN.items()}
    days = SeriesColumns(
        ("holiday",), (), np.zeros(N + 20, np.int64), np.arange(N + 20), holiday[:, None], "D"
    )  # type: ignore[arg-type]
    rows = RowFeatures(windows=(1, 4), seasons=((4, 1),), future=("holiday",))
    model = fit_forecaster(panel_of(known), H, rows=rows, choices=CHOICES, fusion_strength=1.0, columns=days)
    panel = panel_of({"new": sales("a", 8.0, 30)})
    found = new_products(model, table_of(new="a"), panel=panel, columns=days)
    assert np.isfinite(found.forecast(columns=days)["yhat"].to_numpy()).all()
    with pytest.raises(ParameterError, match="give them as columns="):
        new_products(model, table_of(new="a"), panel=panel)


def test_a_forecaster_of_new_products_is_one_like_any_other(
    forecaster: ForecastModel, tmp_path: Path
) -> None:
    found = new_products(forecaster, table_of(new="a"), panel=panel_of({"new": [3.0, 4.0]}))
    assert repr(found) == "NewProducts(1 product, 1 from like products)"
    found.forecaster.save(tmp_path / "f.npz")
    again = ForecastModel.load(tmp_path / "f.npz")
    assert again.forecast(9).equals(found.forecaster.forecast(9))
    parts = found.forecaster.contributions().drop("unique_id", "ds", "yhat").to_numpy().sum(axis=1)
    np.testing.assert_allclose(parts, found.forecast()["yhat"])
    assert not math.isnan(parts.sum())


def test_ranges_are_those_of_like_products_and_wider_where_the_level_is_not_known(
    forecaster: ForecastModel,
) -> None:
    table = table_of(new="a", thin="a")
    frame = new_products(forecaster, table, panel=panel_of({"thin": [35.0]})).forecast(level=[80])
    assert frame.columns[:5] == ["unique_id", "ds", "yhat", "yhat-lo-80", "yhat-hi-80"]
    width = frame.with_columns(width=pl.col("yhat-hi-80") - pl.col("yhat-lo-80"))
    new, thin = (width.filter(unique_id=name)["width"].to_numpy() for name in ("new", "thin"))
    like = forecaster.forecast(level=[80], unique_ids=["a2", "a3"])
    own = (like["yhat-hi-80"] - like["yhat-lo-80"]).to_numpy().reshape(2, H)
    assert (thin > 0.3 * own.min(axis=0)).all()
    assert (thin < 3.0 * own.max(axis=0)).all()
    assert (new > 2.0 * thin).all()


@pytest.mark.parametrize(
    ("table", "error", "message"),
    [
        ({"unique_id": ["new"]}, ParameterError, "attributes must be DataFrame, not dict"),
        (pl.DataFrame({"kind": ["a"]}), DataError, "need a column 'unique_id'; there are kind"),
        (pl.DataFrame({"unique_id": ["x"], "n": [1]}), DataError, "column 'n' must be text, not Int64"),
        (pl.DataFrame({"unique_id": ["x", "x"]}), DataError, "hold the product 'x' twice"),
        (pl.DataFrame({"unique_id": ["x", None]}), DataError, "has a missing value"),
        (
            pl.DataFrame({"unique_id": ["x"], **{f"c{i}": ["v"] for i in range(9)}}),
            ParameterError,
            "at most 8 columns, not 9",
        ),
        (pl.DataFrame({"unique_id": ["a0", "b0"]}), DataError, "no product is new"),
    ],
)
def test_tables_that_cannot_be_used_are_refused(
    forecaster: ForecastModel, table: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        new_products(forecaster, table)


def test_a_panel_of_another_frequency_is_refused(forecaster: ForecastModel) -> None:
    weekly = SeriesPanel(("new",), [0, 1], [3], [1.0], "W")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="the panel's frequency is 'W', the forecaster's 'D'"):
        new_products(forecaster, table_of(new="a"), panel=weekly)


def test_without_a_history_in_the_forecaster_nothing_is_like() -> None:
    model = fit_forecaster(panel_of({"a": [1.0, 2.0]}), H, rows=ROWS)
    with pytest.raises(DataError, match="no product of the forecaster has a history"):
        new_products(model, pl.DataFrame({"unique_id": ["new"]}))


WEEK = np.array([1.0, 1.0, 1.0, 1.0, 1.5, 3.0, 0.5])


@pytest.fixture(scope="module")
def weekly() -> ForecastModel:
    """Products that sell most on the sixth day of seven, and are zero now and then."""
    rng = np.random.default_rng(0)
    sold = {f"{i}": rng.poisson((2.0 + i / 5) * np.tile(WEEK, 12)).astype(float) for i in range(150)}
    rows = RowFeatures(windows=(28,), season_means=((7, 4),))
    return fit_forecaster(panel_of(sold, 84), 7, rows=rows, choices=CHOICES, fusion_strength=1.0)


@pytest.mark.parametrize("day", [81, 82, 83, 84, 85])
def test_a_first_value_is_set_against_what_like_products_sell_on_that_weekday(
    weekly: ForecastModel, day: int
) -> None:
    """The sixth, the seventh, or a day after the others end: forecasts are those of an average day."""
    panel = panel_of({"new": [20.0 * WEEK[day % 7]]}, day + 1)
    found = new_products(weekly, pl.DataFrame({"unique_id": ["new"]}), panel=panel).forecaster
    expected = 20.0 * WEEK[(max(day, 83) + 1 + np.arange(7)) % 7]
    np.testing.assert_allclose(found.point_forecasts()[0], expected, rtol=0.3)


@pytest.mark.parametrize("values", [[40.0], [0.0], [0.0, 0.0, 0.0], [9.0] * 8])
def test_few_values_have_ranges_with_a_width(weekly: ForecastModel, values: list[float]) -> None:
    panel = panel_of({"new": values}, 84)
    found = new_products(weekly, pl.DataFrame({"unique_id": ["new"]}), panel=panel).forecaster
    low, high = np.moveaxis(found.quantile_forecasts([0.1, 0.9])[0], 1, 0)
    assert (high - low > 1.0).all()
    assert (low <= found.point_forecasts()[0]).all()
    assert (high <= 40.0 * max(values) + 100.0).all()


@pytest.mark.parametrize("n", [0, 1, 2, 4])
def test_ranges_of_few_values_hold_their_share(weekly: ForecastModel, n: int) -> None:
    rng = np.random.default_rng(n)
    truth = (2.0 + 30.0 * rng.random(400))[:, None] * np.tile(WEEK, 13)
    sold = rng.poisson(truth).astype(float)
    ids = [f"new{i}" for i in range(400)]
    first = panel_of({name: own[84 - n : 84] for name, own in zip(ids, sold, strict=True)}, 84)
    found = new_products(weekly, pl.DataFrame({"unique_id": ids}), panel=first).forecaster
    for level, least in ((0.8, 0.77), (0.95, 0.92)):
        ends = found.quantile_forecasts([0.5 - level / 2, 0.5 + level / 2])
        inside = (sold[:, 84:] >= ends[:, :, 0]) & (sold[:, 84:] <= ends[:, :, 1])
        assert least <= inside.mean() <= 0.99


def test_a_product_that_ended_long_ago_is_forecast_once_and_by_its_own_history() -> None:
    values = np.concatenate([[1.0, 3.0] * 10, [2.0, 6.0] * 10, [3.0, 9.0] * 10, [4.0, 12.0] * 4])
    period = [*range(20)] * 3 + [*range(8)]
    panel = SeriesPanel(("a", "b", "c", "old"), [0, 20, 40, 60, 68], period, values, "D")
    forecaster = fit_forecaster(panel, 2, rows=RowFeatures(seasons=((2, 1),)))
    table = pl.DataFrame({"unique_id": ["a", "b", "c", "old", "new"], "shop": ["x"] * 5})
    found = forecast_all(forecaster, table, 1)
    assert found["unique_id"].to_list() == ["a", "b", "c", "old", "new"]
    assert found.row(3) == ("old", date(1970, 1, 9), pytest.approx(4.0), "ok")
