"""A replay judges what the recorded run was asked to judge, unless the options are typed anew."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from doctor.cli import run
from doctor.job.wishes import JobWishes
from doctor.model import SourcedValue
from doctor.probe import HostAnswer
from doctor.recording import _nonsense, save
from doctor.transport.way import Typed, Way
from tests.support.cases import cases, from_cases
from tests.support.recordings import heard, recording
from tests.support.reports import NAMES, SMALL_SHM

Answers = Mapping[str, HostAnswer]
SICK: Answers = {"node2": heard(2, NAMES, spaces=SMALL_SHM)}
SHORT_QUEUE = from_cases(__file__, "SHORT_QUEUE", dict[str, str])
WARNED = {"node3": heard(3, NAMES, ports=SHORT_QUEUE)}
"""On a host that is not the head, a short queue is a warning."""


def replayed(
    tmp_path: Path, asked: tuple[Typed, ...], *typed: str, command: str = "check", of: Answers = SICK
) -> int:
    file = tmp_path / "run.json"
    save(recording(NAMES, command=command, heard=of, way=Way(asked=asked)), file)
    return run(["check", "--replay", str(file), *typed])


@cases
def test_the_options_of_the_run_are_kept(asked: tuple[Typed, ...], code: int, tmp_path: Path) -> None:
    assert replayed(tmp_path, asked) == code


@cases
def test_what_is_typed_for_the_replay_overrides_them(
    asked: tuple[Typed, ...], typed: list[str], tmp_path: Path
) -> None:
    assert replayed(tmp_path, asked, *typed) == 1


def test_a_choice_that_applied_to_no_host_is_still_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert replayed(tmp_path, (("--only", "gpu-missing"),)) == 3
    assert "gpu-missing applies to no host" in " ".join(capsys.readouterr().out.split())


def test_the_choice_of_a_command_that_examines_nothing_is_not_ours(tmp_path: Path) -> None:
    assert replayed(tmp_path, (("--only", "host-unreachable"),), command="facts") == 1


def test_a_warning_counts_if_it_counted_in_the_run(tmp_path: Path) -> None:
    assert replayed(tmp_path, (), of=WARNED) == 0
    assert replayed(tmp_path, (("--strict",),), of=WARNED) == 1


def test_the_largest_port_is_one() -> None:
    for port, told in ((65535, []), (65536, ["its master port is out of range"])):
        wishes = JobWishes(master_port=SourcedValue(port, "--master-port"))
        assert list(_nonsense(recording(["a"], wishes=wishes))) == told
