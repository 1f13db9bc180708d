"""What `doctor explain` prints about each check."""

from __future__ import annotations

import pytest

from doctor.judge.registry import find_checks

IDS = [check.id for check in find_checks().checks]


@pytest.mark.parametrize("id", IDS)
def test_explain(id: str, capsys: pytest.CaptureFixture[str]) -> None:
    from doctor.cli.explain import print_page

    assert print_page(id, ()) == 0
    page = capsys.readouterr().out
    assert page.startswith(f"{id}: ")
    assert "Why it matters: " in page
    assert "What to do: " in page
