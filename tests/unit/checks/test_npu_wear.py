"""Optical values, flapping links and error counters of NPUs: facts in, problems out."""

from collections.abc import Mapping
from typing import Any

import pytest

from checks.npu_wear import LinkChange
from doctor.api import Expect
from doctor.facts.ascend.ports import Optics
from tests.support.cases import cases, cases_with, from_cases
from tests.support.npu_cluster import NODE1, SILENT, UNSUPPORTED, Judgement, each, everywhere, judge, plan

VALUES = from_cases(__file__, "VALUES", dict[str, float])
FLAGS = {"Tx Los Flag": 0, "Rx Los Flag": 0, "Tx LoL Flag": 0, "Rx LoL Flag": 0}


def module(changes: Mapping[str, float] | None = None, present: bool | None = True) -> Optics:
    own = {**VALUES, **FLAGS, **(changes or {})}
    flags = {key: int(own[key]) for key in FLAGS}
    return Optics(present, {key: own[key] for key in VALUES}, flags)


def optical(found: Any, links: Any = None) -> Judgement:
    return judge("device-optical", found, plan(), NODE1, links)


def test_healthy_modules() -> None:
    assert optical(each(module())).passed
    assert optical(each(module(present=None))).passed, "an old tool does not say whether it is present"
    assert optical(each(Optics(True, {"temperature": 90.0, "Rx Power0": 9.0}))).passed, "no thresholds"
    none_set = {"Temp High Thres": 0.0, "temperature": 47.0, "Temp Low Thres": 0.0}
    assert optical(each(Optics(True, none_set))).passed


@cases
def test_values_outside_their_limits(changes: dict[str, float], actual: str) -> None:
    problem = optical(each(module(), {3: module(changes)})).only
    assert (problem.subject, problem.actual) == ("device 3", actual)


def test_values_at_their_limits_are_healthy() -> None:
    assert optical(each(module({"temperature": 70, "Vcc": 3135.0, "Rx Power0": 0.1445}))).passed


@cases_with(module, each)
def test_no_module_where_the_others_have_one(own: Optics | None, links: Any) -> None:
    found = optical(each(module(), {3: own}), links)
    assert (found.only.subject, found.only.actual) == ("device 3", "the module is not present")


def test_copper_has_no_modules() -> None:
    assert "optical" in optical(each(None), each(True)).skipped
    assert optical(each(None)).skipped
    assert optical(each(None), each(True, {3: False})).only.subject == "device 3"
    assert optical(each(None, {3: SILENT}), each(True)).problems == ()
    assert optical(each(UNSUPPORTED)).skipped == UNSUPPORTED.reason


def test_modules_of_links_that_are_down_are_a_finding_of_their_own() -> None:
    """So that the consequences of the link fault follow only from that fault."""
    dark = module({"Rx Power0": 0})
    found = optical(each(module(), {3: dark, 4: dark, 5: dark}), each(True, {3: False}))
    assert [problem.subject for problem in found.problems] == ["device 3", "devices 4-5"]
    assert optical(each(module(), {3: SILENT})).unknown


def history(*downs: float | None) -> tuple[LinkChange, ...]:
    return tuple(LinkChange(f"{ago} s ago", ago, up) for ago in downs for up in (True, False))


def flaps(found: Any, **expect: int) -> Judgement:
    return judge("device-link-flaps", found, plan(), NODE1, Expect(**expect))  # type: ignore[arg-type]


HOUR, DAY = 3600.0, 86400.0


@pytest.mark.parametrize(
    ("own", "expect", "actual"),
    [
        (history(), {}, None),
        (history(HOUR, 2 * HOUR), {}, None),
        (history(HOUR, 2 * HOUR, DAY), {}, "3 times"),
        (history(HOUR, 2 * HOUR, DAY + 1), {}, None),
        (history(*[2 * DAY] * 50), {}, None),
        (history(HOUR), {"link_flaps": 0}, "1 time"),
        (tuple(LinkChange("now", 5.0, up) for up in (True, False, True, True)), {}, None),
        (history(0, 0, 0), {}, "3 times"),
    ],
)
def test_links_that_flap(own: tuple[LinkChange, ...], expect: dict[str, int], actual: str | None) -> None:
    found = flaps(each(history(), {3: own}), **expect)
    assert [problem.actual for problem in found.problems] == ([actual] if actual else [])
    assert not found.unknown
    if actual:
        assert found.only.subject == "device 3"


def test_several_links_flap() -> None:
    problem = flaps(each(history(), {3: history(1, 2, 3), 5: history(1, 2, 3, 4)})).only
    assert (problem.subject, problem.actual) == ("devices 3,5", "3 to 4 times")


def test_times_that_could_not_be_read() -> None:
    found = flaps(each(history(), {3: history(None, None, None)}))
    assert (found.problems, "device 3" in found.unknown) == ((), True)
    assert flaps(each(history(), {3: history(None)})).passed
    assert flaps(each(history(), {3: SILENT})).unknown


def errors(said: Mapping[str, Any], **expect: int) -> Judgement:
    return judge("device-link-errors", said, plan(), Expect(**expect))  # type: ignore[arg-type]


QUIET = from_cases(__file__, "QUIET", dict[str, int])


@cases
def test_far_more_errors_than_the_others(
    own: dict[str, int], expect: dict[str, int], actual: str | None
) -> None:
    found = errors({**everywhere(each(QUIET)), "node2": each(QUIET, {3: {**QUIET, **own}})}, **expect)
    assert [problem.actual for problem in found.problems] == ([actual] if actual else [])
    assert found.places == ({("node2", 3)} if actual else set())


def test_congestion_is_shown_not_judged() -> None:
    own = {**QUIET, "mac_rx_bad_pkt_num": 70000, "mac_rx_mac_pause_num": 12, "nic_rx_all_pkg_num": 5}
    problem = errors({"node1": each(QUIET, {3: own})}).only
    assert "mac_rx_mac_pause_num 12" in problem.evidence[0].text
    assert "mac_tx_pfc_pkt_num 9000000" in problem.evidence[0].text
    assert "nic_rx_all_pkg_num" not in problem.evidence[0].text


def test_errors_that_all_devices_have_blame_none() -> None:
    noisy = {**QUIET, "roce_out_of_order_num": 10**6}
    assert errors(everywhere(each(noisy))).passed
    one = errors({"node1": each(QUIET, numbers=[0])})
    assert "no other NPU" in one.skipped
    pair = errors({"node1": each(QUIET, {1: noisy}, [0, 1])})
    assert [place.device for place in pair.only.where] == [1]


def test_old_firmware_reports_few_counters() -> None:
    few = {"roce_rx_err_pkt_num": 0, "roce_tx_err_pkt_num": 0}
    said = {**everywhere(each(QUIET)), "node2": each(few, {3: {"roce_rx_err_pkt_num": 9999}})}
    assert errors(said).only.actual == "device 3: roce_rx_err_pkt_num 9999"
    assert errors({**everywhere(each(QUIET)), "node2": each(SILENT)}).unknown_hosts == ("node2",)
