"""A screen for hundreds of hosts: counted first, listed once, with every fault."""

import json
import re
from functools import cache

import msgspec
import pytest

from benchmarks.forge import forge
from doctor.judge.examine import build_report
from doctor.judge.playbook import load_exam, load_remedies
from doctor.judge.reading import read_recording
from doctor.judge.registry import find_checks
from doctor.judge.verdict import Report
from doctor.recording import Recording
from doctor.report.out.formats import check_html
from doctor.text.nodeset import cut, unfold
from tests.support.cases import cases
from tests.support.recordings import syllabus
from tests.support.reports import text

HOSTS, ONE_IN = 120, 7
SICK = [f"node{n}" for n in range(ONE_IN, HOSTS + 1, ONE_IN)]


@cache
def large(mesh: bool = False) -> Report:
    """17 of 120 hosts are sick, each with a different clock error; by default no connections were tried."""
    made = json.dumps(forge("gpus", HOSTS, mesh=mesh, one_in=ONE_IN))
    checks = find_checks().checks
    exam = syllabus(checks, load_exam("full", checks))
    return build_report(read_recording(msgspec.json.decode(made, type=Recording)), exam, load_remedies())


def test_the_fault_comes_before_the_names_and_these_come_once() -> None:
    said = text(large(), 100)
    assert f"FAIL  {len(SICK)} hosts  clock is" in said
    (listed,) = re.findall(r"^ {6}hosts {6}(.*)$", said, re.MULTILINE)
    assert unfold(listed) == SICK, "one line, to be copied whole"
    assert "type on each of them:" in said


@pytest.mark.parametrize("width", [80, 100, 200])
def test_the_table_keeps_each_column_with_a_fault(width: int) -> None:
    table = text(large(), width).partition("\nHOST ")[2].partition("\n\n")[0]
    head, *rows = table.splitlines()
    for area in ("reach", "devices", "memory"):
        assert area in head
    assert all(len(row.rstrip()) <= width for row in rows)
    rows = [row for row in rows if not row.startswith("ok on all")]
    assert rows[-1].split()[:2] == ["103", "others"], "the rest in one row, the last"
    assert sum(int(row.split()[0]) for row in rows) == HOSTS


@pytest.mark.parametrize("width", [80, 200])
def test_the_last_sentence_counts_by_area(width: int) -> None:
    last = " ".join(text(large(), width).partition("\nHOST ")[2].partition("\n\n")[2].split())
    assert last.startswith(f"{len(SICK)} of {HOSTS} hosts are faulty: devices (5), ")
    assert f", reach ({len(SICK)}). " in last, "clocks do the least damage"
    assert "103 not proved healthy: fewer than two hosts could take part." in last
    assert "node[" not in last.partition(" checks, ")[0]


def test_the_last_sentence_says_why_links_leave_hosts_unproved() -> None:
    """Not which link it was on the first of them."""
    last = " ".join(text(large(mesh=True), 200).splitlines()[-4:])
    assert " 103 not proved healthy: not tried beyond the handshake. " in last


def test_the_page_cuts_names_alike_and_folds_the_whole_list() -> None:
    page = check_html(large()).decode().replace("<wbr>", "")
    whole = cut("node[7,14,21,28,35,42,49,56,63,70,77,84,91,98,105,112,119]", 32)
    assert f"<details><summary>{len(SICK)} hosts: {whole}</summary>node[7,14," in page


@cases
def test_names_are_not_cut_inside_of_a_range(room: int, shown: str) -> None:
    assert cut("node[7,14-18,210]", room) == shown
