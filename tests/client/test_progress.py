"""Progress is shown on a terminal, and nowhere else."""

from __future__ import annotations

import pytest

from ccmtl_client.progress import Progress, shown


def test_a_terminal_shows_the_phase_and_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with shown(True) as show:
        show(Progress("selection", 3, 43, "fit 3 of 43"))
    captured = capsys.readouterr()
    assert "selection" in captured.err
    assert "fit 3 of 43" in captured.err
    assert captured.out == ""


@pytest.mark.parametrize("progress", [True, False])
def test_elsewhere_nothing_is_shown(
    progress: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    with shown(progress) as show:
        show(Progress("upload", 3, 4))
    assert capsys.readouterr() == ("", "")
