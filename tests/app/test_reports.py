"""A comparison that the model lost is told, with what to try."""

from __future__ import annotations

from typing import Any

import pytest

from app.reports import rival_notes
from ccmtl_core import ModelChoices


@pytest.mark.parametrize(
    ("chosen", "folds", "ahead", "lost"),
    [
        ({}, 0.9, 0.9, 2),
        ({}, 0.9, 1.1, 1),
        ({}, 1.1, 0.9, 1),
        ({}, 0.9995, 1.0, 0),
        ({"fit_intercept": True, "metric": "mahalanobis"}, 0.9, 1.1, 1),
    ],
)
def test_notes_name_what_was_not_chosen(
    chosen: dict[str, Any], folds: float, ahead: float, lost: int
) -> None:
    choices = ModelChoices(**chosen)
    selection = {"errors": [2.0, 1.0], "chosen": 1, "rivals": {"pooled": folds, "shrunk": 3.0}}
    metrics = {"rmse_mean_of_tasks": {"ccmtl": 1.0, "pooled": 2.0, "single_task": ahead, "zero": 2.0}}
    *notes, to_try = rival_notes(choices, metrics, selection, of_series=True) or [""]
    assert len(notes) == lost
    for note in notes:
        assert ("the model is not behind" in note) == (lost == 1)
        assert "against 1" in note
    assert ("fit_intercept true" in to_try) == ("metric mahalanobis" in to_try) == (bool(lost) and not chosen)
    assert ("loss_scaling spread" in to_try) == ("more or fewer lags" in to_try) == bool(lost)
    assert rival_notes(choices, {}, None, of_series=True) == []
    alone = rival_notes(choices, {}, {**selection, "rivals": {"shrunk": 0.5}}, of_series=False)
    assert "0.5 against 1" in alone[0]
    assert "lags" not in alone[1]


def test_a_rival_with_the_same_choices_is_called_that() -> None:
    selection = {"errors": [1.0], "chosen": 0, "rivals": {"pooled": 2.0, "pooled_same_choices": 0.5}}
    note, to_try = rival_notes(ModelChoices(fit_intercept=True), {}, selection, of_series=False)
    assert "the rival pooled (one model for all) with the same choices has a smaller error" in note
    assert to_try.endswith("the rival itself (fusion_strength 1e9).")


@pytest.mark.parametrize(("same", "blamed"), [(0.889, "the harm, not the fusing)"), (0.85, "the harm)")])
def test_choices_that_do_harm_are_blamed_and_advised_against(same: float, blamed: str) -> None:
    errors = {"ccmtl": 0.889, "pooled": 0.801, "pooled_same_choices": same, "zero": 0.9}
    choices = ModelChoices(fit_intercept=True, loss_scaling="spread")
    note, to_try = rival_notes(choices, {"rmse_mean_of_tasks": errors}, None, of_series=False)
    assert f"0.801 against 0.889 (with this model's choices it has {same:g}" in note
    assert blamed in note
    assert to_try == (
        'What to try: no fit_intercept and no loss_scaling, or fusion_strength "auto", or the rival itself '
        "(without the choices, fusion_strength 1e9)."
    )


def test_a_model_that_is_worse_than_always_0_is_told() -> None:
    errors = {"ccmtl": 0.889, "pooled": 0.9, "zero": 0.88}
    note, to_try = rival_notes(ModelChoices(), {"rmse_mean_of_tasks": errors}, None, of_series=True)
    assert note == "On the held-out rows this model is worse than always forecasting 0: 0.889 against 0.88."
    assert to_try.startswith("What to try: fit_intercept true, or ")
