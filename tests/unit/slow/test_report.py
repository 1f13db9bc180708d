"""The page of `doctor slow`."""

from pathlib import Path

import pytest

from doctor import cli
from doctor.exam.demo import evidence_of
from tests.support.golden import compare
from tests.support.html_page import parsed
from tests.support.paths import ROOT

SAMPLE = evidence_of("slow")
GOLDEN = ROOT / "tests" / "golden" / "slow"


@pytest.mark.parametrize("width", [80, 200])
def test_golden(width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    assert cli.run(["demo", "slow", "--lang", "en"]) == 0
    compare(GOLDEN / f"demo.{width}.txt", capsys.readouterr().out)


def test_the_title_says_who_is_late_and_what_that_costs(tmp_path: Path) -> None:
    told = tmp_path / "slow.html"
    assert cli.run(["slow", "--replay", str(SAMPLE), "--html", str(told)]) == 1
    page = parsed(told.read_bytes())
    assert page.one("h1").text.startswith("Late rank 5 on node3 (pid 57): the others wait for it ")
    rows = page.one("tbody").all("tr")
    assert [row.one("th").text for row in rows] == ["5", *"0123467"]
    assert ["warn" in str(row.one("th").attributes["class"]) for row in rows] == [True] + [False] * 7
