"""A device tool that hangs is a fault of its host, whichever vendor's it is."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from doctor.judge.verdict import Report
from doctor.model import Capture, MissingFact, Status
from doctor.probe import NOT_STOPPED
from tests.support.cases import from_cases
from tests.support.recordings import report
from tests.unit.judge.test_odd_host import sample

NODE = "node2"


def judged(name: str, texts: Mapping[str, str], missing: Mapping[str, str] | None = None) -> Report:
    """A recording in which one host's tools printed something else, or nothing."""
    of, missing = sample(name), missing or {}
    answer = of.heard[NODE]
    captures = {fact: own for fact, own in answer.captures.items() if fact not in missing}
    captures |= {fact: Capture(fact, 0, text) for fact, text in texts.items()}
    reasons = {fact: MissingFact(fact, why) for fact, why in missing.items()}
    lost = {fact: why for fact, why in answer.missing.items() if fact not in texts}
    answer = replace(answer, captures=captures, missing={**lost, **reasons})
    return report(replace(of, heard={**of.heard, NODE: answer}))


def blamed(of: Report) -> set[tuple[str, str, str]]:
    told = [found for found in of.findings if NODE in found.hosts and found.status is not Status.UNKNOWN]
    return {(found.check, found.status.value, found.summary) for found in told}


FRAMES = from_cases(__file__, "FRAMES", dict[str, tuple[str, dict[str, str], str]])


@pytest.mark.parametrize("case", FRAMES)
def test_a_tool_that_hangs(case: str) -> None:
    name, texts, check = FRAMES[case]
    assert blamed(judged(name, {})) == set()
    of = judged(name, texts)
    assert of.exit_code == 1
    tool = case.partition(",")[0]
    assert blamed(of) == {(check, "fail", f"its driver does not answer: {tool} hangs")}
    (found,) = (each for each in of.findings if (each.check, each.status) == (check, Status.FAIL))
    assert found.hosts == (NODE,)
    assert found.remedy
    assert found.remedy.id.startswith("wake-")
    assert "did not answer within" in found.evidence[0].text


def test_one_slow_query_of_one_device_is_not_a_hung_driver() -> None:
    of = judged("npu-healthy", {"npu-links": "devices 0\n@ 0 hung 4\n"})
    assert blamed(of) == set()


def test_two_slow_queries_among_answered_ones_are_not_a_hung_driver() -> None:
    address = "ipaddr:10.20.1.10\nnetmask:255.255.0.0\n\n@ {} 0\n"
    answered = "".join(address.format(device) for device in (0, 2))
    told = f"devices 0 1 2 3 4\n{answered}@ 1 hung 4\n@ 3 hung 4\n@ 4 unasked hung\n"
    assert not any("hangs" in summary for _, _, summary in blamed(judged("npu-healthy", {"npu-links": told})))


def test_pings_that_wait_for_a_dead_peer_are_not_a_hung_driver() -> None:
    told = "pings 0/10.20.3.10 1/10.20.3.11\n@ 0/10.20.3.10 hung 8\n@ 1/10.20.3.11 hung 8\n"
    assert not any("hangs" in summary for _, _, summary in blamed(judged("npu-healthy", {"npu-pings": told})))


def test_a_tool_that_cannot_even_be_killed() -> None:
    of = judged("gpu-healthy", {}, {"gpus": f"its command did not end within 55 s {NOT_STOPPED}"})
    assert blamed(of) == {("gpu-unhealthy", "fail", "its driver does not answer: nvidia-smi hangs")}


def test_a_tool_that_is_not_installed_or_needs_root_does_not_hang() -> None:
    for why in ("its command is not installed there", "needs root (--sudo uses sudo -n)"):
        found = blamed(judged("gpu-healthy", {}, {"gpus": why}))
        assert {check for check, _, _ in found} == {"probe-incomplete"}, "the state of its GPUs is unknown"
