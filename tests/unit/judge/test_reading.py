"""A recording is parsed only once, however often a run reads it while it grows."""

from collections import Counter
from dataclasses import replace

import pytest

from doctor.api import Fact
from doctor.judge.engine import Facts
from doctor.judge.reading import read_recording
from doctor.model import Backend, Capture
from tests.support.recordings import heard, recording
from tests.support.reports import NAMES
from tests.support.smoke.results import healthy, plan_of


def test_unchanged_answers_are_not_parsed_again(monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert first.runs == ()
    assert third.runs[0] is second.runs[0]


def test_results_that_depend_on_a_new_answer_are_judged_again() -> None:
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
