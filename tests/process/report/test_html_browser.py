"""The page in a browser: it opens without network and script, in both colours and on a phone.

The page itself runs no script. A page around it does: it shows the report in a frame as wide as a phone,
measures it there, and writes the results into its own document.
"""

import html
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from doctor.cli import run
from doctor.hang.report import page_of
from doctor.report.html.page import as_html
from doctor.report.out.formats import check_html
from tests.support.accept_runs import accepting, shares, timed
from tests.support.cases import from_cases
from tests.support.hang.reports import judgements
from tests.support.html_page import Node, parsed
from tests.support.reports import reports

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), "")
pytestmark = pytest.mark.skipif(not CHROMIUM, reason="needs chromium")
DARK, LIGHT = 0, 1
MEASURE = from_cases(__file__, "MEASURE", str)


def browsed(page: Path, folder: Path, *options: str) -> Node:
    """The browser's document of the page, as it would write it."""
    quiet = ("--no-first-run", "--disable-gpu", "--disable-background-networking", "--disable-dev-shm-usage")
    command = [
        CHROMIUM,
        "--headless",
        "--no-sandbox",
        f"--user-data-dir={folder / 'browser'}",
        *quiet,
        *options,
    ]
    ran = subprocess.run(
        [*command, "--dump-dom", page.as_uri()], capture_output=True, timeout=120, check=True, cwd=folder
    )
    return parsed(ran.stdout)


def measured(made: bytes, folder: Path, colour: int, width: int) -> dict[str, Any]:
    written = made.decode()
    page = folder / "around.html"
    page.write_text(
        f'<!doctype html><html><head><meta charset="utf-8"></head><body>'
        f'<iframe style="width:{width}px;height:800px"></iframe>'
        f"<textarea>{html.escape(written)}</textarea><output></output><script>{MEASURE}</script></body></html>"
    )
    found = browsed(
        page, folder, f"--blink-settings=preferredColorScheme={colour}", "--virtual-time-budget=9000"
    )
    answer: dict[str, Any] = json.loads(found.one("output").text)
    return answer


@pytest.mark.main
def test_the_browser_shows_what_was_written(tmp_path: Path) -> None:
    """The browser has nothing to repair and adds nothing."""
    written = check_html(reports()["smoke-hung"])
    page = tmp_path / "page.html"
    page.write_bytes(written)
    shown, meant = browsed(page, tmp_path), parsed(written)
    assert [node.name for node in shown.all()] == [node.name for node in meant.all()]
    assert shown.one("body").text.split() == meant.one("body").text.split()
    assert "rank 5 on node3" in shown.one("h1").text


@pytest.mark.parametrize(("colour", "width"), [(LIGHT, 360), (DARK, 360), (LIGHT, 1200), (DARK, 1200)])
@pytest.mark.parametrize("name", ["sick-hosts", "smoke-hung"])
def test_the_page_fits_and_can_be_read(name: str, colour: int, width: int, tmp_path: Path) -> None:
    found = measured(check_html(reports()[name]), tmp_path, colour, width)
    check_readable(found, colour)
    assert found["first"] < 120, "the culprit is what one sees first"
    assert found["title"].startswith("Faulty: ")
    assert bool(found["wide"]) == (width == 360)
    for moved, share in found["wide"]:
        assert abs(moved) < 1, "the first column stays while its table is moved sideways"
        assert share < 0.6, "it leaves room for the others"
    assert len(found["contrast"]) > 100


@pytest.mark.parametrize(("colour", "width"), [(LIGHT, 360), (DARK, 1200)])
def test_so_does_that_of_a_job_that_hangs(colour: int, width: int, tmp_path: Path) -> None:
    found = measured(as_html(page_of(judgements()["several"])), tmp_path, colour, width)
    check_readable(found, colour)
    assert found["title"].startswith("Hangs: rank 1 on node2")


@pytest.mark.parametrize(("colour", "width"), [(DARK, 360), (LIGHT, 1200)])
def test_so_does_that_of_an_acceptance_test(colour: int, width: int, tmp_path: Path) -> None:
    """With a drawing of the collectives for each place."""
    (tmp_path / "run.json").write_text(json.dumps(timed(accepting(shares({"node2": 0.5})))))
    made = tmp_path / "page.html"
    run(["accept", "--replay", str(tmp_path / "run.json"), "--html", str(made), "--quiet"])
    assert made.read_text().count("Bus bandwidth of collectives") == 2 * 3
    found = measured(made.read_bytes(), tmp_path, colour, width)
    check_readable(found, colour)
    assert found["title"].startswith("Faulty: node2")


def check_readable(found: dict[str, Any], colour: int) -> None:
    assert found["errors"] == []
    assert found["width"][0] <= found["width"][1], "it would have to be moved sideways"
    paper = sum(map(int, found["paper"].strip("rgb()").split(",")))
    assert (paper < 3 * 64) == (colour == DARK)
    assert found["contrast"][0][0] >= 4.5, found["contrast"][:3]
