"""What `doctor explain` says of each check."""

from __future__ import annotations

from pathlib import Path

import pytest

from doctor.judge.registry import find
from tests.support.commands import doctor

IDS = [check.id for check in find().checks]


@pytest.mark.parametrize("id", IDS)
def test_explain(id: str, capsys: pytest.CaptureFixture[str]) -> None:
    from doctor.cli.explain import print_page

    assert print_page(id, ()) == 0
    page = capsys.readouterr().out
    assert page.startswith(f"{id}: ")
    assert "Why it matters: " in page
    assert "What to do: " in page


def test_explain_names_the_file_of_the_check() -> None:
    plain, verbose = doctor("explain", "swap-active").stdout, doctor("explain", "swap-active", "-v").stdout
    named = verbose.removeprefix(plain).removeprefix("\nWritten in ").rstrip("\n")
    assert '@check("swap-active"' in Path(named).read_text()
