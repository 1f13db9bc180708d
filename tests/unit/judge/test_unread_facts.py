"""Facts that a host did not give are reported, even if no check needs them; they decide nothing."""

from dataclasses import replace

import pytest

from doctor.judge.verdict import Report
from doctor.model import MissingFact
from tests.support.recordings import heard, recording, report

NAMES = ["node1", "node2", "node3"]
LATE = "its command did not end within 2 s"


def judged(**odd: str | MissingFact) -> Report:
    return report(recording(NAMES, heard={"node2": heard(2, NAMES, **odd)}))


def told(of: Report) -> list[str]:
    """Everything below "Not examined"."""
    return [*of.notes, *(f"{found.summary} {found.nodeset}" for found in of.findings)]


def test_where_everything_was_read_nothing_is_told() -> None:
    assert judged().notes == ()


@pytest.mark.parametrize("answer", ["garbage", "", "\x1b[2J1795167475", MissingFact("", LATE)])
@pytest.mark.parametrize("fact", ["clock", "clock-end", "view"])
def test_what_no_verdict_hangs_on_is_told(fact: str, answer: str | MissingFact) -> None:
    of = judged(**{fact: answer})
    assert of.exit_code == 0
    assert [text for text in told(of) if "node2" in text and "could not be read" in text]


def test_what_a_check_tells_is_not_told_twice() -> None:
    of = judged(spaces=MissingFact("spaces", LATE), clock="garbage")
    assert of.exit_code == 3
    assert of.notes == ()


def test_the_facts_of_an_answer_that_was_cut_are_told_by_its_finding() -> None:
    of = judged(identity="", clock_end="")
    assert of.exit_code == 3
    assert of.notes == ()


def test_a_reason_that_a_host_wrote_stays_short() -> None:
    answers = {name: heard(n, NAMES, clock_end=name * 5000) for n, name in enumerate(NAMES, 1)}
    assert max(map(len, report(recording(NAMES, heard=answers)).notes)) < 300


def test_an_older_recording_that_was_not_asked_tells_nothing() -> None:
    answer = heard(2, NAMES)
    captures = {fact: text for fact, text in answer.captures.items() if fact != "clock-end"}
    of = recording(NAMES, heard={"node2": replace(answer, captures=captures)})
    assert report(of).notes == ()
