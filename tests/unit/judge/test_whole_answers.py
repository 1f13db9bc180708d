"""What a host must report to count as examined: its identity, its devices, and their state."""

from dataclasses import replace
from typing import Any

import pytest

from doctor.job.wishes import JobWishes
from doctor.judge.verdict import Report
from doctor.model import Backend, Capture, HostStatus, MissingFact, SourcedValue, Status
from doctor.probe import HostAnswer
from tests.support.captures import as_read
from tests.support.recordings import FILES, heard, recording, report
from tests.support.reports import seated
from tests.support.smoke.results import healthy
from tests.unit.judge.test_odd_host import sample

NAMES = ["node1", "node2", "node3"]
DRIVER = {"/proc/driver/nvidia/version": "NVRM version: Module  550.90  x"}
EIGHT_GPUS = as_read(DRIVER | {f"/dev/nvidia{n}": "" for n in range(8)})


def judged(*odd: HostAnswer, **changes: Any) -> Report:
    return report(recording(NAMES, heard={each.host: each for each in odd}, **changes))


def unexamined(of: Report) -> dict[str, str | None]:
    assert all(host.status is not HostStatus.FAULTY for host in of.hosts)
    return {host.name: host.reason for host in of.hosts if host.status is HostStatus.UNEXAMINED}


def reasons(of: Report) -> dict[str, str]:
    told = [
        found for found in of.findings if (found.check, found.status) == ("probe-incomplete", Status.WARN)
    ]
    return {host: found.summary for found in told for host in found.hosts}


def test_all_is_well() -> None:
    assert (judged().exit_code, unexamined(judged())) == (0, {})


@pytest.mark.parametrize("lost", [(*FILES, "identity"), ("identity",), ("devices",)], ids=len)
def test_without_files_a_host_is_not_examined(lost: tuple[str, ...]) -> None:
    why = "reading files did not end within 10 s, or was killed"
    answer = heard(2, NAMES, **{fact.replace("-", "_"): MissingFact(fact, why) for fact in lost})
    of = judged(answer)
    assert of.exit_code == 3
    assert unexamined(of).keys() == {"node2"}
    assert why in reasons(of)["node2"]


def test_a_host_that_does_not_say_who_it_is_is_not_examined() -> None:
    of = judged(heard(2, NAMES, identity=""))
    assert of.exit_code == 3
    assert unexamined(of).keys() == {"node2"}
    assert "does not report its name" in reasons(of)["node2"]


def without_nvidia_smi(number: int) -> HostAnswer:
    answer = heard(number, NAMES, devices=EIGHT_GPUS)
    missing = MissingFact("gpus", "its command is not installed there")
    return replace(
        answer, captures={**answer.captures, "gpus": Capture("gpus", 127, "")}, missing={"gpus": missing}
    )


def test_devices_that_no_tool_tells_of_are_not_examined() -> None:
    every = [without_nvidia_smi(number) for number in (1, 2, 3)]
    of = judged(*every)
    assert of.exit_code == 3
    assert unexamined(of).keys() == {*NAMES}
    assert "nvidia-smi is not installed there" in reasons(of)["node1"]


SILENT = {"crashed": "\n@ {} 139\n", "printed nothing": "", "not reached": "@ {} unasked time\n"}


@pytest.mark.parametrize("how", SILENT)
@pytest.mark.parametrize("name", ["gpu-healthy", "npu-healthy"])
def test_devices_whose_tool_lists_none_are_not_examined(name: str, how: str) -> None:
    of, own = sample(name), name[:3]
    silent = {
        host: replace(
            answer,
            captures={
                fact: replace(seen, stdout=SILENT[how].format(fact)) if fact.startswith((own, "nv")) else seen
                for fact, seen in answer.captures.items()
            },
        )
        for host, answer in of.heard.items()
    }
    found = report(replace(of, heard=silent))
    assert found.exit_code == 3
    assert unexamined(found).keys() == of.heard.keys()


def test_devices_whose_listing_ended_with_a_signal_are_not_examined() -> None:
    of = sample("gpu-healthy")
    lost = MissingFact("gpus", "its command ended with 139")
    heard = {host: replace(answer, missing={"gpus": lost}) for host, answer in of.heard.items()}
    assert report(replace(of, heard=heard)).exit_code == 3


def test_devices_whose_tool_prints_without_end_are_not_examined() -> None:
    of = sample("gpu-healthy")
    flood = {"gpus": Capture("gpus", 0, "@ gpus long\n")}
    heard = {host: replace(seen, captures={**seen.captures, **flood}) for host, seen in of.heard.items()}
    assert report(replace(of, heard=heard)).exit_code == 3


def test_devices_that_no_tool_tells_of_are_proved_by_a_training_on_them() -> None:
    every = [without_nvidia_smi(number) for number in (1, 2, 3)]
    run = healthy(seated(tuple(NAMES), each=2, tp=2))
    seats = tuple(replace(seat, device=seat.local) for seat in run.plan.seats)
    on_gpus = replace(run, plan=replace(run.plan, seats=seats))
    assert reasons(judged(*every, smoke_wanted=True)) == {}, "it is not over yet"
    assert reasons(judged(*every, smoke_wanted=True, smoke=(on_gpus,))) == {}
    for other in ({"smoke": (run,)}, {"no_smoke": "the deadline came before it"}):
        assert reasons(judged(*every, smoke_wanted=True, **other)).keys() == {*NAMES}


def test_a_job_on_cpus_needs_no_tool_of_devices() -> None:
    every = [without_nvidia_smi(number) for number in (1, 2, 3)]
    assert judged(*every, wishes=JobWishes(backend=SourcedValue(Backend.GLOO, "--backend"))).exit_code == 0
