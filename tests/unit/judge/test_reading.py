"""A recording is understood once, however often a run looks at it while it grows."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace

import pytest

from doctor.api import Fact
from doctor.judge.engine import Facts
from doctor.judge.reading import read_recording
from doctor.model import Backend, Capture
from tests.support.commands import environment
from tests.support.recordings import heard, recording
from tests.support.reports import NAMES
from tests.support.smoke.results import healthy, plan_of

COUNTING = """
import collections, json, sys
from doctor.cli import run
from doctor.judge import reading
from doctor.judge.engine import Facts
from doctor.run import collect

counted = collections.Counter()
def count(owner, name, key):
    inner = getattr(owner, name)
    def counting(*args):
        counted[key(*args)] += 1
        return inner(*args)
    setattr(owner, name, counting)

for owner, name in ((collect, "draft"), (reading, "draft"), (reading, "settle"), (reading, "judge")):
    count(owner, name, lambda *_, name=name: name)
count(Facts, "_parse", lambda _, host, fact: f"{host} {fact.name}")
sys.stdout = sys.stderr
code = run(sys.argv[1:])
print(json.dumps({"code": code, **counted}), file=sys.__stdout__)
"""


@pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="no torch in the interpreter of the tests"
)
def test_a_preflight_drafts_settles_and_judges_once() -> None:
    options = ["--local", "--python", sys.executable, "--ranks-per-host", "2", "--steps", "5"]
    ran = subprocess.run(
        [sys.executable, "-c", COUNTING, "preflight", *options],
        capture_output=True,
        text=True,
        timeout=200,
        env=environment(),
        check=False,
    )
    counted = json.loads(ran.stdout)
    assert counted.pop("code") in (0, 1), ran.stderr
    assert {name: counted[name] for name in ("draft", "settle", "judge")} == dict.fromkeys(
        ("draft", "settle", "judge"), 1
    )
    assert len(counted) > 20, "facts were parsed"
    assert set(counted.values()) == {1}, counted


def test_what_is_not_new_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: Counter[str] = Counter()
    parse = Facts._parse

    def counting(self: Facts, host: str, fact: Fact[object]) -> object:
        parsed[f"{host} {fact.name}"] += 1
        return parse(self, host, fact)

    monkeypatch.setattr(Facts, "_parse", counting)
    first = read_recording(recording(NAMES))
    more = first.recording.heard["node1"]
    more = replace(more, captures={**more.captures, "npu-pings": Capture("npu-pings", 0, "")})
    run = healthy(plan_of(2))
    grown = replace(first.recording, heard={**first.recording.heard, "node1": more}, smoke=(run,))
    second = read_recording(grown, first)
    third = read_recording(replace(grown, smoke=(run, run)), second)
    assert set(parsed.values()) == {1}
    assert first.plan is second.plan is third.plan
    assert first.smoke is None
    assert second.smoke is not None
    assert third.smoke is not None
    assert third.smoke.runs[0] is second.smoke.runs[0]


def test_what_depends_on_a_new_answer_is_done_again() -> None:
    before = read_recording(recording(NAMES))
    other = heard(1, NAMES, addresses="1: lo inet 127.0.0.1/8 scope\n2: eth0 inet 10.0.9.1/24 scope global")
    changed = replace(before.recording, heard={**before.recording.heard, "node1": other})
    after = read_recording(changed, before)
    assert after.plan == read_recording(changed).plan
    assert (before.plan.data_address("node1"), after.plan.data_address("node1")) == ("10.0.0.1", "10.0.9.1")
    assert before.plan.backend.value is after.plan.backend.value is Backend.GLOO


def test_a_host_that_answers_later_counts() -> None:
    whole = recording(NAMES)
    few = {name: answer for name, answer in whole.heard.items() if name != "node4"}
    before = read_recording(replace(whole, heard=few))
    after = read_recording(whole, before)
    assert before.plan.data_address("node4") is None
    assert after.plan == read_recording(whole).plan
