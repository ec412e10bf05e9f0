"""Every way to end says in words what it means."""

from __future__ import annotations

import pytest

from ccmtl_core import SolveReport, SolveStatus


@pytest.mark.parametrize("status", SolveStatus)
def test_each_status_has_a_sentence(status: SolveStatus) -> None:
    report = SolveReport(status, "newton", 1.0, 0.1, 1e-4, 1, 1, {}, ())
    assert report.advice == status.advice
    assert status.advice[0].isupper()
    assert status.advice.endswith(".")
    assert len(status.advice.split()) >= 8


def test_sentences_differ() -> None:
    assert len({status.advice for status in SolveStatus}) == len(SolveStatus)
