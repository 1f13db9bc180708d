"""The page of `doctor slow`."""

from __future__ import annotations

from pathlib import Path

from doctor import cli
from tests.support.html_page import parsed
from tests.support.paths import ROOT

SAMPLE = ROOT / "tests" / "samples" / "slow" / "loader-on-4-hosts.json.gz"


def test_the_title_says_who_is_late_and_what_that_costs(tmp_path: Path) -> None:
    told = tmp_path / "slow.html"
    assert cli.run(["slow", "--replay", str(SAMPLE), "--html", str(told)]) == 1
    title = parsed(told.read_bytes()).one("h1").text
    assert title.startswith("Late rank 5 on node3 (pid 57): the others wait for it ")
