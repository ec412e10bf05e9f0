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
def test_a_note_names_what_was_not_chosen(
    chosen: dict[str, Any], folds: float, ahead: float, lost: int
) -> None:
    choices = ModelChoices(**chosen)
    selection = {"errors": [2.0, 1.0], "chosen": 1, "rivals": {"pooled": folds, "shrunk": 3.0}}
    metrics = {"rmse_mean_of_tasks": {"ccmtl": 1.0, "pooled": 2.0, "single_task": ahead, "zero": 2.0}}
    notes = rival_notes(choices, metrics, selection, of_series=True)
    assert len(notes) == lost
    for note in notes:
        assert ("the model is not behind" in note) == (lost == 1)
        assert f"fit_intercept {'false' if chosen else 'true'}" in note
        assert f"metric {'euclidean' if chosen else 'mahalanobis'}" in note
        assert "against 1: try" in note or "the model is not behind: try" in note
    assert rival_notes(choices, {}, None, of_series=True) == []
    alone = rival_notes(choices, {}, {**selection, "rivals": {"shrunk": 0.5}}, of_series=False)
    assert "0.5 against 1" in alone[0]
    assert "lags" not in alone[0]


def test_a_rival_with_the_same_choices_is_called_that() -> None:
    selection = {"errors": [1.0], "chosen": 0, "rivals": {"pooled": 2.0, "pooled_same_choices": 0.5}}
    (note,) = rival_notes(ModelChoices(fit_intercept=True), {}, selection, of_series=False)
    assert "the rival pooled (one model for all) with the same choices has a smaller error" in note
