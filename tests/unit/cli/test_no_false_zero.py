"""Recordings that must never end with exit code 0, judged by the command line."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from doctor.cli import run
from doctor.mesh.result import OmittedHost
from doctor.model import MissingFact
from doctor.recording import Recording, save
from doctor.smoke.result import SmokeResult
from tests.support.cases import cases, from_cases
from tests.support.headlines import headline
from tests.support.recordings import HEALTHY, heard, recording
from tests.support.reports import NAMES, seated, smoke_runs
from tests.support.smoke.results import healthy, with_end
from tests.support.smoke.spoilt import masked

PLUG_IN = from_cases(__file__, "PLUG_IN", str)
OLD_EXAM = "title: mine\n"


@dataclass(frozen=True, slots=True)
class Ended:
    code: int
    out: str
    err: str
    healthy: list[str]


@pytest.fixture
def judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    def judge(of: Recording, *options: str) -> Ended:
        file, hosts = tmp_path / "run.json", tmp_path / "healthy"
        save(of, file)
        code = run(["check", "--replay", str(file), "--healthy-hosts", str(hosts), *options])
        return Ended(code, *capsys.readouterr(), hosts.read_text().split() if hosts.exists() else [])

    return judge


@pytest.fixture
def plug_in(tmp_path: Path) -> Callable[..., list[str]]:
    """Options that load a check which breaks on some hosts."""

    def write(*hosts: str) -> list[str]:
        folder = tmp_path / "more"
        folder.mkdir()
        (folder / "plug.py").write_text(PLUG_IN.format(hosts=hosts))
        return ["--checks", str(folder)]

    return write


@pytest.fixture
def exam(tmp_path: Path) -> Callable[[str], list[str]]:
    def write(text: str) -> list[str]:
        (tmp_path / "mine.yaml").write_text(text)
        return ["--exam", str(tmp_path / "mine.yaml")]

    return write


Judged = Callable[..., Ended]
WELL = recording(NAMES)


@pytest.mark.parametrize("options", [[], ["-q"], ["--strict"], ["-q", "--strict"]])
def test_a_check_that_breaks(options: list[str], judged: Judged, plug_in: Callable[..., list[str]]) -> None:
    ended = judged(WELL, *plug_in(*NAMES), *options)
    assert (ended.code, ended.healthy) == (3, [])
    assert headline(ended.out, "BROKEN  node[1-4]", "plug-in")
    assert "Inconclusive: a check broke." in ended.out


def test_a_host_on_which_a_check_breaks_is_not_counted(
    judged: Judged, plug_in: Callable[..., list[str]]
) -> None:
    """The other hosts can train without it, and it is always reported."""
    broken = plug_in("node2")
    ended = judged(WELL, *broken, "--need-hosts", "4", "-q", "--print", "launch=hostfile")
    assert (ended.code, ended.out) == (1, "")
    assert headline(ended.err, "BROKEN  node2", "plug-in")
    ended = judged(WELL, *broken, "--need-hosts", "3", "-q", "--print", "launch=hostfile")
    assert (ended.code, ended.healthy) == (0, ["node1", "node3", "node4"])
    assert ended.out == "node1 slots=2\nnode3 slots=2\nnode4 slots=2\n"
    assert headline(ended.err, "BROKEN  node2", "plug-in")


CUT = replace(
    heard(2, NAMES, spaces=MissingFact("spaces", "the connection was lost")),
    complete=False,
)


@cases
def test_half_an_answer_whatever_the_exam_calls_essential(
    text: str, judged: Judged, exam: Callable[[str], list[str]]
) -> None:
    ended = judged(recording(NAMES, heard={"node2": CUT}), *exam(text))
    assert (ended.code, ended.healthy) == (3, ["node1", "node3", "node4"])
    assert "incomplete" in ended.out


@pytest.mark.parametrize(
    ("broken", "check"),
    [
        ({"heard": {"node2": heard(2, NAMES, spaces=MissingFact("spaces", "did not end"))}}, "shm-small"),
        ({"mesh": None, "no_mesh": "the deadline came before it"}, "port-unreachable"),
    ],
)
def test_what_is_essential_to_every_exam(
    broken: dict[str, Any], check: str, judged: Judged, exam: Callable[[str], list[str]]
) -> None:
    ended = judged(recording(NAMES, **broken), *exam(OLD_EXAM), "-q")
    assert ended.code == 3
    assert check in ended.out


TORCH = {
    name: heard(n, NAMES, python=HEALTHY["python"] + "package torch 2.13.0\n")
    for n, name in enumerate(NAMES, 1)
}


def trained(*runs: SmokeResult, **more: Any) -> Recording:
    return recording(NAMES, heard=TORCH, smoke_wanted=True, smoke=runs, **more)


@pytest.mark.parametrize(
    "of",
    [
        trained(smoke_runs()["interrupted"]),
        trained(with_end(smoke_runs()["passed"], "deadline", 120.0)),
        trained(no_smoke="the deadline came before it"),
        trained(),
    ],
    ids=["interrupted", "deadline", "late", "never begun"],
)
@pytest.mark.parametrize("text", [OLD_EXAM, "title: mine\nsmoke: true\nchecks: [nofile-low]\n"])
def test_a_smoke_run_that_was_cut_or_not_made(
    of: Recording, text: str, judged: Judged, exam: Callable[[str], list[str]]
) -> None:
    mine = exam(text)
    ended = judged(of, *mine, "-q")
    assert (ended.code, ended.healthy) == (3, [])
    assert "smoke" in ended.out
    ended = judged(of, *mine, "-q", "--need-hosts", "2", "--print", "launch=torchrun")
    assert (ended.code, ended.out, ended.healthy) == (1, "", [])


@cache
def accused(rank: int) -> SmokeResult:
    """A complete run that accuses the host of one rank because of its masks."""
    return masked(rank, 3)(healthy(seated(NAMES, each=2, tp=2)))


THROWN_OUT = (OmittedHost("node1", "an earlier smoke run named it"),)


@cache
def without() -> SmokeResult:
    return replace(healthy(seated(NAMES[1:], each=2, tp=2)), left_out=THROWN_OUT)


SKIPPED = ["--skip", "smoke-mask-divergence"]


@pytest.mark.parametrize(
    "options",
    [SKIPPED, ["--skip", "smoke-*"], ["--only", "shm-small"], ["--only", "smoke-hang"]],
    ids=" ".join,
)
def test_a_host_that_was_thrown_out_is_not_healthy(options: list[str], judged: Judged) -> None:
    ended = judged(trained(accused(1), without()), *options)
    assert (ended.code, ended.healthy) == (3, ["node2", "node3", "node4"])
    assert "training on node1: a smoke run named it" in ended.out
    line = judged(trained(accused(1), without()), *options, "--need-hosts", "4", "--print", "launch=hostfile")
    assert (line.code, line.out) == (1, "")
    line = judged(trained(accused(1), without()), *options, "--need-hosts", "3", "--print", "launch=hostfile")
    assert (line.code, "node1" in line.out, line.out.count("\n")) == (0, False, 3)


@pytest.mark.parametrize("options", [["--skip", "smoke-*"], ["--only", "shm-small"]], ids=" ".join)
def test_a_host_that_took_no_part_is_not_healthy(options: list[str], judged: Judged) -> None:
    ended = judged(trained(replace(without(), left_out=())), *options)
    assert (ended.code, ended.healthy) == (3, ["node2", "node3", "node4"])
    assert "training on node1: it did not take part in the last smoke run" in ended.out


def test_hosts_that_only_trained_with_an_accused_one_are_not_healthy(judged: Judged) -> None:
    """No run showed whether they can train without it."""
    ended = judged(trained(accused(1)), *SKIPPED, "--need-hosts", "2")
    assert (ended.code, ended.healthy) == (1, [])
    ended = judged(trained(accused(1)), "--need-hosts", "2")
    assert (ended.code, ended.healthy) == (1, [])


def test_a_severity_of_an_exam_does_not_pass_a_smoke_run(
    judged: Judged, exam: Callable[[str], list[str]]
) -> None:
    mine = exam("title: mine\nsmoke: true\nseverity: {smoke-mask-divergence: warn}\n")
    ended = judged(trained(accused(1), without()), *mine)
    assert (ended.code, ended.healthy) == (3, ["node2", "node3", "node4"])


def test_an_interrupted_run_has_no_go(judged: Judged) -> None:
    ended = judged(replace(WELL, stopped_by=2), "--need-hosts", "2")
    assert (ended.code, ended.healthy) == (3, [])


def test_what_is_well_is_one_line(judged: Judged, plug_in: Callable[..., list[str]]) -> None:
    for of in (WELL, trained(smoke_runs()["passed"]), recording(NAMES[:1])):
        ended = judged(of, "-q")
        assert (ended.code, ended.out, ended.healthy) == (0, "", [host.name for host in of.hosts])
        assert re.fullmatch(r"doctor: go: .* s; replayed\n", ended.err)
    assert judged(WELL, *plug_in(), "-q").code == 0


def alone() -> Recording:
    return recording(NAMES[:1])


@cases
def test_what_was_chosen_and_applied_to_nobody(options: list[str], says: str, judged: Judged) -> None:
    done = judged(alone(), *options)
    assert (done.code, done.healthy) == (1 if "--need-hosts" in options else 3, [])
    assert says in " ".join(done.out.split())
    assert "Healthy" not in done.out
    assert ("all pass" in done.out) is ("Inconclusive" in done.out)


def test_it_says_what_to_type(judged: Judged) -> None:
    assert (
        "Type: doctor preflight node1,HOSTS --only firewall-blocks"
        in judged(alone(), "--only", "firewall-blocks").out
    )


@pytest.mark.parametrize("only", ["shm-small", "shm", "shm-small,shm-full,mem*", "*-low", "firewall,shm"])
def test_what_was_chosen_and_applied_somewhere_is_healthy(only: str, judged: Judged) -> None:
    """If a pattern matches several checks, those that do not apply do not matter."""
    assert judged(recording(NAMES), "--only", only).code == 0


def test_what_skip_leaves_need_not_apply_as_a_whole(judged: Judged) -> None:
    assert judged(alone(), "--skip", "shm-small").code == 0
