"""One host's odd answer affects only that host: no check crashes on it, and the faults of other hosts are
still found.

Drawn from recordings of real runs: part of one host's answer is replaced by that of another host, by the
answer to another question, or by nonsense.
"""

import gzip
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doctor.judge.verdict import Report
from doctor.model import MissingFact, Scope, Status
from doctor.probe import DAMAGED, HostAnswer
from doctor.recording import Recording, load
from tests.support.cases import from_cases
from tests.support.paths import ROOT
from tests.support.recordings import report

pytestmark = pytest.mark.slow
SAMPLES = ROOT / "tests" / "samples" / "recordings"
NAMES = from_cases(__file__, "NAMES", tuple[str, ...])
NONSENSE = ("", "\0", "-1", "9" * 400, "%s" * 9, "| | |\n" * 9, "nan", "fe80::1%eth0", "10.0.0.1/99", "設備")
WHY = ("its command did not end within 5 s", DAMAGED)
TIMES = ((0.0, 0.0), (3600.0, 3600.0), (0.0, -7.0), (0.0, 3600.0))
"""By how much the beginning and the end of the answer are off, by this machine's clock."""


@cache
def sample(name: str) -> Recording:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "run.json")
        path.write_bytes(gzip.decompress((SAMPLES / f"{name}.run.json.gz").read_bytes()))
        return load(path)


@cache
def judged(name: str) -> Report:
    return report(sample(name))


def shown(of: Report, victim: str) -> Iterator[tuple[str, str]]:
    """The check and the host of each fault that hosts other than the victim show by themselves."""
    for result in of.results:
        if result.status in (Status.FAIL, Status.WARN) and of.checks.scopes[result.check] is Scope.HOST:
            yield from ((result.check, host) for host in result.hosts if host != victim)


@st.composite
def odd(draw: st.DrawFn, answer: HostAnswer) -> HostAnswer:
    """The same answer, with parts replaced."""
    heard = sample(draw(st.sampled_from(NAMES))).heard
    donor = heard[draw(st.sampled_from(sorted(heard)))]
    captures, missing = dict(answer.captures), dict(answer.missing)
    for fact in draw(st.sets(st.sampled_from(sorted(captures)), min_size=1)):
        own = captures[fact]
        text = draw(
            st.one_of(
                st.sampled_from(NONSENSE),
                st.integers(0, 2000).map(lambda end, text=own.stdout: text[:end]),  # type: ignore[misc]
                st.sampled_from(sorted(donor.captures)).map(lambda name: donor.captures[name].stdout),
                st.just(donor.captures[fact].stdout if fact in donor.captures else ""),
                st.none(),
            )
        )
        if text is not None:
            captures[fact] = replace(own, stdout=text)
        else:
            del captures[fact]
            missing[fact] = MissingFact(fact, draw(st.sampled_from(WHY)))
    started, ended = draw(st.sampled_from(TIMES))
    return replace(
        answer,
        captures=captures,
        missing=missing,
        started=answer.started + started,
        ended=answer.ended + ended,
    )


def check(data: st.DataObject, name: str) -> None:
    of, before = sample(name), judged(name)
    victim = data.draw(st.sampled_from(sorted(of.heard)))
    after = report(replace(of, heard={**of.heard, victim: data.draw(odd(of.heard[victim]))}))
    assert [(each.check, each.reason) for each in after.results if each.status is Status.CRASH] == []
    assert [each.reason for each in after.results if "its parser broke" in (each.reason or "")] == []
    if after.plan.vendor is before.plan.vendor:
        assert set(shown(before, victim)) <= set(shown(after, victim))


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=3, deadline=None)
@given(data=st.data())
def test_an_odd_answer_of_one_host_hides_nothing_of_the_others(name: str, data: st.DataObject) -> None:
    check(data, name)


@pytest.mark.long
@settings(max_examples=1000, deadline=None)
@given(data=st.data(), name=st.sampled_from(NAMES))
def test_odd_answers_of_one_host_hide_nothing_in_many_more_cases(data: st.DataObject, name: str) -> None:
    check(data, name)
