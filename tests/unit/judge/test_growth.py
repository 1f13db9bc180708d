"""Twice the hosts cost twice the work: no judge and no report goes through all hosts for each host."""

import cProfile
import json
import sys
from collections import Counter
from functools import _lru_cache_wrapper, cache
from typing import Any

import msgspec
import pytest

from benchmarks.forge import forge
from doctor.judge.examine import build_report
from doctor.judge.playbook import load_exam, load_remedies
from doctor.judge.reading import read_recording
from doctor.judge.registry import find_checks
from doctor.recording import Recording
from doctor.report.out.formats import check_html, check_markdown
from tests.support.cases import from_cases
from tests.support.envelopes import as_json, as_junit, as_prometheus
from tests.support.paths import ROOT
from tests.support.recordings import syllabus
from tests.support.reports import text

GROWTH = 2.2
MORE = 5
"""Calls for each host beyond twice as many: fewer may come from a fault that only the larger cluster has. A
loop over all hosts for each host makes a hundred and more.
"""
KILOBYTES = "kilobytes of reports"
PLACES = "places found"
OURS = tuple(f"{ROOT}/{folder}/" for folder in ("doctor", "checks"))
CACHES = ("doctor.text.", "doctor.report.", "doctor.job.", "doctor.facts.", "rich.")
KINDS = from_cases(__file__, "KINDS", dict[str, tuple[str, dict[str, Any]]])


@cache
def calls(kind: str, hosts: int) -> Counter[str]:
    """How often each function was called: ours, and the functions that they call."""
    demo, more = KINDS[kind]
    recording = msgspec.json.decode(json.dumps(forge(demo, hosts, **more)), type=Recording)
    checks, remedies = find_checks().checks, load_remedies()
    made = syllabus(checks, load_exam("full", checks))
    forget_texts()
    profile = cProfile.Profile()
    profile.enable()
    report = build_report(read_recording(recording), made, remedies)
    text(report, 100)
    forms = [form(report) for form in (check_html, as_json, as_junit, check_markdown, as_prometheus)]
    profile.disable()
    places = sum(len(each.where) for each in report.findings)
    found: Counter[str] = Counter({KILOBYTES: sum(map(len, forms)) // 1000, PLACES: places})
    for each in profile.getstats():
        if isinstance(each.code, str):
            found[each.code] += each.callcount
        elif each.code.co_filename.startswith(OURS):
            at = each.code.co_filename.removeprefix(f"{ROOT}/")
            found[f"{at}:{each.code.co_firstlineno} {each.code.co_name}"] += each.callcount
    return found


def forget_texts() -> None:
    """Empties the caches of names and addresses: an earlier test left only those of the smaller cluster."""
    for module in [module for name, module in sys.modules.items() if name.startswith(CACHES)]:
        for each in vars(module).values():
            if isinstance(each, _lru_cache_wrapper):
                each.cache_clear()


def grown(kind: str, hosts: int) -> list[str]:
    """The calls that grew faster than the number of hosts and of their faults."""
    before, after = calls(kind, hosts), calls(kind, 2 * hosts)
    most = max(GROWTH, 1.05 * after[PLACES] / before[PLACES])
    assert most < 2 * GROWTH, "the forged fault itself grows with the square"
    return [
        f"{name}: {before[name]} -> {number}"
        for name, number in after.items()
        if number > most * before[name] and number - 2 * before[name] > MORE * hosts
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", ["gpus-and-a-torn-mesh", "gpus-of-copied-machines", "npus-with-doubled-addresses"]
)
def test_twice_the_hosts_take_twice_the_calls(kind: str) -> None:
    assert grown(kind, 100) == []


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_so_do_two_thousand_hosts(kind: str) -> None:
    assert grown(kind, 1000) == []
