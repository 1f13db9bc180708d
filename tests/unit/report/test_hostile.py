"""Hostile hosts and recordings cannot draw on the terminal, imitate a line or break the JSON."""

import re
import unicodedata
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from doctor.judge.verdict import Report
from doctor.model import Host, MissingFact, UnreachedHost, UnreachedKind
from doctor.text.printable import clean
from tests.support.envelopes import as_data, wrong
from tests.support.recordings import heard, recording, report
from tests.support.reports import SMALL_SHM, text

HOSTILE = "\x1b[2J\x1b]0;owned\x07\r\b\x9b31m\u202eevil\u2066\u200b\u2028\n\x00 \U000e0041末"


def hostile_report(evil: str) -> Report:
    names = ["node1", "node2", "node3"]
    answers = {
        "node1": heard(
            1,
            names,
            identity={"/proc/sys/kernel/hostname": evil},
            spaces=SMALL_SHM.replace("/dev/vda", evil),
            kernel_log=f"[1.0] Out of memory: Killed {evil}",
            python=f"python 3.9 {evil}",
            firewall=MissingFact("firewall", evil),
        ),
        "node2": heard(
            2, names, environment=f"NCCL_DEBUG={evil}", kernel={"/proc/sys/kernel/osrelease": evil}
        ),
    }
    lost = UnreachedHost("node3", UnreachedKind.OTHER, evil, evil, (evil,), evil)
    made = recording(names, heard=answers, unreached={"node3": lost}, notes=(evil,))
    return report(replace(made, heard={n: made.heard[n] for n in names[:2]}))


def unsafe(shown: str) -> list[str]:
    """The characters that may move the cursor, change colours or the direction of writing, or hide text."""
    return [c for c in shown if c != "\n" and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")]


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(evil=st.just(HOSTILE) | st.text(max_size=40))
def test_hostile_output_prints_no_escapes_and_breaks_no_json(evil: str) -> None:
    made = hostile_report(evil)
    for width in (80, 200):
        assert unsafe(text(made, width, verbose=True)) == []
    assert wrong(as_data(made)) == []


def test_a_line_end_in_output_of_a_host_cannot_imitate_a_finding() -> None:
    shown = text(hostile_report("x\nFAIL  node9  shm-small\n\nHealthy. "), 200, verbose=True)
    assert not [line for line in shown.splitlines() if re.match(r"FAIL +node9|Healthy", line)]


def test_hostile_host_names_of_a_recording() -> None:
    """A recording may come from another person."""
    name = f"no{HOSTILE}de"
    made = recording(["node1", "node2"], hosts=(Host(name, name), Host("node2", "node2")))
    assert unsafe(text(report(made), 80, verbose=True)) == []
    assert wrong(as_data(report(made))) == []


@given(st.text())
def test_cleaned_text_is_safe_to_print(given_text: str) -> None:
    shown = clean(given_text)
    assert not [c for c in unsafe(shown) if c not in "\t"]
    assert clean(shown) == shown
