"""An attacker in place of rank 0, who knows all public variables of the job, cannot run a program.

Without a secret, a false rank 0 on another host cannot be distinguished from the true one. Here it belongs to
our own user, so that it is believed as that one would be.
"""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from doctor.api import Ask
from doctor.exam.in_job.listener import RankListener
from doctor.exam.in_job.member import LONGEST, SLACK, Membership, patience
from doctor.exam.in_job.messages import Hello, RunVerdict, StartProgram, Welcome
from doctor.exam.in_job.own_programs import Makers
from doctor.exam.in_job.rank_env import JobRank, read_job_rank
from doctor.exam.in_job.wire import CONTROL, STDERR, STDIN, STDOUT
from doctor.exam.request import ExamFlags, Request, SmokeFlags, WayFlags
from doctor.hang.options import HangWishes
from doctor.job.launch.brief import brief
from doctor.live.on_rank import own_agent
from doctor.logs.fetch.run import own_fetch
from doctor.logs.options import FetchWishes
from doctor.slow.on_rank import own_sampler
from doctor.slow.options import SlowWishes
from doctor.transport.question import (
    LogsQuestion,
    LookQuestion,
    MeshQuestion,
    ProbeQuestion,
    Question,
    SmokeQuestion,
)
from tests.support.cases import cases, from_cases
from tests.support.injob import free_port
from tests.support.injob_attacks import FalseHead

PLAIN = Request("check")
TOKEN = "0123456789abcdef" * 2
OWN = {"NCCL_DEBUG": "INFO", "RANK_TABLE_FILE": "/etc/table.json"}
START = from_cases(__file__, "START", dict[str, Any])
"""Which is what a true rank 0 may say."""


HELLO = Hello(1, 2, "vm", "", 1, 1, 1, "0", env=OWN)


def a_seat() -> JobRank:
    """Rank 1 of 2."""
    job = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    return read_job_rank({**job, "RANK": "1", "WORLD_SIZE": "2"})


@contextmanager
def at(seat: JobRank, head: FalseHead) -> Iterator[None]:
    """It waits where ranks look for rank 0 first."""
    with socket.create_server(("127.0.0.1", seat.ports[0])) as server:
        threading.Thread(target=lambda: head(server.accept()[0]), daemon=True).start()
        yield


@pytest.fixture
def asked() -> Callable[..., FalseHead]:
    """The result of a question, and of lines for its program, once that program has ended."""

    def ask(
        question: Question, *lines: bytes, request: Request = PLAIN, own: Makers | None = None
    ) -> FalseHead:
        seat = a_seat()
        stdin = b"".join(line + b"\n" for line in lines)
        head = FalseHead(
            seat.token,
            [Welcome("vm", "", 1, 1), StartProgram(1, question), (STDIN, 1, stdin)],
            until=lambda head: '"ended"' in head.texts(CONTROL),
        )
        with at(seat, head):
            outcome = Membership(seat, HELLO, request, own or {}).follow(20)
        assert outcome.code == 1
        return head

    return ask


def probe(name: str = "clock", token: str = TOKEN, **more: Any) -> ProbeQuestion:
    return ProbeQuestion(token, (name,), Ask(**{"host": "node1", **more}))


def test_questions_of_the_probe_are_answered(asked: Callable[..., FalseHead]) -> None:
    head = asked(probe(names=("localhost",), tables=("/etc/table.json",)))
    assert f"{TOKEN[:16]} o clock 0" in head.texts(STDOUT)
    assert head.texts(STDERR) == ""


def test_a_sites_own_questions_are_answered_by_ranks_with_its_checks(
    asked: Callable[..., FalseHead], tmp_path: Path
) -> None:
    """The checks that run there are those in the rank's own file."""
    (tmp_path / "site.py").write_text(
        "from doctor.api import Fact, Run, check\n"
        "OWN = Fact('site-own', Run('echo of the site'), lambda capture: capture.stdout)\n"
        "@check('site-check', OWN)\n"
        "def site(own):\n    yield from ()\n"
    )
    own = Request("check", what=ExamFlags(checks=(tmp_path,)))
    assert "of the site" in asked(probe("site-own"), request=own).texts(STDOUT)
    assert "give every rank the same --checks" in asked(probe("site-own")).texts(STDERR)
    gone = Request("check", what=ExamFlags(checks=(tmp_path / "gone",)))
    assert "it is not a folder" in asked(probe(), request=gone).texts(STDERR)


def test_an_interpreter_cannot_be_named(asked: Callable[..., FalseHead], tmp_path: Path) -> None:
    """The rank uses the one of its own --python, or python3."""
    ran, python = tmp_path / "ran", tmp_path / "python"
    python.write_text(f"#!/bin/sh\ntouch {ran}\n")
    python.chmod(0o755)
    head = asked(probe("python", python=str(python)))
    assert f"{TOKEN[:16]} o python 0" in head.texts(STDOUT)
    assert not ran.exists()


@pytest.mark.parametrize(
    "question",
    [
        probe(token="$(touch RAN)"),
        probe(host="$(touch RAN)"),
        probe(names=("a;touch RAN",)),
        probe(names=("-oProxyCommand=touch RAN",)),
        probe(tables=("/etc/shadow",)),
        probe("npu-pings", pings=((0, "$(touch RAN)"),)),
        probe("id >RAN"),
    ],
)
def test_other_questions_are_refused(
    question: ProbeQuestion, asked: Callable[..., FalseHead], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    head = asked(question)
    assert head.texts(STDOUT) == ""
    assert "a question that a rank does not answer" in head.texts(
        STDERR
    ) or "no check that needs" in head.texts(STDERR)
    assert list(tmp_path.iterdir()) == []


def test_the_probe_reads_no_commands_from_rank_0(asked: Callable[..., FalseHead], tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    head = asked(probe("names", names=("localhost",)), f"touch {ran}".encode())
    assert "sent more than a question" in head.texts(STDERR)
    assert not ran.exists()


def test_the_agents_of_a_mesh_do_what_they_are_told(asked: Callable[..., FalseHead]) -> None:
    head = asked(MeshQuestion(), b"hello 00ff 0 10.0", b"listen 1 0 127.0.0.1", b"beat", b"stop")
    assert '"say":"listener","id":1,"port":' in head.texts(STDOUT).replace(" ", "")
    assert head.texts(STDERR) == ""


@pytest.mark.parametrize(
    "line",
    [
        b"hello 00ff 0 a[$(touch RAN)]",
        b"connect 1 a[$(touch RAN)] 1 1 0 1 127.0.0.1",
        b"connect 1 1.0 1.0 1 0 1 $(touch RAN)",
        b"listen 1 0 ../../etc",
        b"eval touch RAN",
        b"",
    ],
)
def test_a_mesh_is_told_nothing_else(
    line: bytes, asked: Callable[..., FalseHead], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "sent the mesh an unknown command" in asked(MeshQuestion(), line).texts(STDERR)
    assert list(tmp_path.iterdir()) == []


def test_a_training_starts_as_this_rank_would(asked: Callable[..., FalseHead]) -> None:
    """Here it has no rank to start; the agent reports that it was reached."""
    head = asked(SmokeQuestion(), json.dumps(START).encode(), b'{"do":"stop"}')
    assert '"say":"ready"' in head.texts(STDOUT)
    assert head.texts(STDERR) == ""


@cases
def test_a_training_is_given_no_program_variable_or_fault(
    change: dict[str, Any], says: str, asked: Callable[..., FalseHead]
) -> None:
    head = asked(SmokeQuestion(), json.dumps({**START, **change}).encode())
    assert says in head.texts(STDERR)


def command(do: str, **more: Any) -> bytes:
    return json.dumps({"do": do, **more}).encode()


HANG, SLOW = own_agent(PLAIN, HangWishes()), own_sampler(PLAIN, SlowWishes())
FIND = {"lease": 10.0, "beat": 2.0, "within": 5.0, "launchers": brief()}


@pytest.mark.parametrize("own", [HANG, SLOW])
def test_agents_of_a_look_do_what_they_are_told(own: Makers, asked: Callable[..., FalseHead]) -> None:
    lines = [command("find", **FIND), command("beat"), command("look", apart=0.0, within=1.0, names=["vm"])]
    head = asked(
        LookQuestion(), *lines, command("ends", ends=[["127.0.0.1:1", "::1.2"]]), command("stop"), own=own
    )
    assert head.texts(STDERR) == ""


@pytest.mark.parametrize(
    "line",
    [
        command("find", **{**FIND, "launchers": {"launchers": []}}),
        command("find", **FIND, command={"names": ["SECRET"]}),
        command("tool", data="ZWNobyBydW4=", last=True),
        command("look", apart=0.0, within=1.0, names=["-x", "a;touch RAN"]),
        command("look", apart=0.0, within=1.0, pids=["$(touch RAN)"]),
        command("sample", devices=[{"vendor": "nvidia", "script": "touch RAN"}]),
        command("run", command="touch RAN"),
        b"",
    ],
)
@pytest.mark.parametrize("own", [HANG, SLOW])
def test_agents_of_a_look_are_told_nothing_else(
    own: Makers,
    line: bytes,
    asked: Callable[..., FalseHead],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    head = asked(LookQuestion(), line, own=own)
    assert '"ended","number":1,"rc":126' in head.texts(CONTROL).replace(" ", "")
    assert list(tmp_path.iterdir()) == []


def test_samples_run_the_ranks_own_scripts(asked: Callable[..., FalseHead]) -> None:
    numbers = {"number": 0, "seconds": 0.2, "parts": 2, "within": 1.0}
    pids: dict[str, list[int]] = {"stacks": [], "record": [], "gil": []}
    head = asked(LookQuestion(), command("sample", first=True, **numbers, **pids, devices=[]), own=SLOW)
    assert "a question that a rank does not answer" in head.texts(STDERR)


def test_logs_are_read_where_the_rank_was_told(asked: Callable[..., FalseHead], tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("RuntimeError\n")
    own = own_fetch(PLAIN, FetchWishes(paths=(str(log),)))
    head = asked(LogsQuestion(TOKEN, "node1"), own=own)
    assert f"{TOKEN} done" in head.texts(STDOUT)
    assert head.texts(STDERR) == ""
    of_logs = LogsQuestion(TOKEN, "node1")
    for question, known in ((LogsQuestion("$(id)", "node1"), own), (of_logs, HANG), (LookQuestion(), own)):
        refused = asked(question, own=known)
        assert (refused.texts(STDOUT), "rank 0" in refused.texts(STDERR)) == ("", True)


@pytest.mark.parametrize(("sure", "both", "code"), [(False, True, 3), (False, False, 0), (True, True, 0)])
def test_a_good_verdict_that_nothing_vouches_for_needs_to_be_the_only_one(
    sure: bool, both: bool, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The true rank 0 waits at the next port; a rank on another host cannot distinguish the two."""
    monkeypatch.setattr("doctor.exam.in_job.find_head.peer_is_ours", lambda _: True if sure else None)
    seat = a_seat()
    says = [Welcome("vm", "", 1, 1), RunVerdict(0)]
    head = FalseHead(seat.token, says, until=lambda head: '"taken"' in head.texts(CONTROL))
    with ExitStack() as stack:
        stack.enter_context(at(seat, head))
        if both:
            listener = RankListener(replace(seat, ports=seat.ports[1:]), lambda _: None)
            stack.callback(listener.close)
        outcome = Membership(seat, HELLO, PLAIN, {}).follow(20)
    assert outcome.code == code, outcome
    if code:
        first, second = (f"127.0.0.1:{port}" for port in seat.ports[:2])
        assert f"two processes claim to be rank 0, at {first} and at {second}" in outcome.words[0]


def test_nobody_follows_a_rank_0_that_gives_no_verdict_for_longer_than_the_run_may_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("doctor.exam.in_job.member.SLACK", 0.0)
    seat = a_seat()
    head = FalseHead(
        seat.token, [Welcome("x", "another", 7, 1)], until=lambda head: '"taken"' in head.texts(CONTROL)
    )
    with at(seat, head):
        outcome = Membership(seat, HELLO, Request("check", way=WayFlags(deadline=1.0)), {}).follow(20)
    assert outcome.code == 1
    assert outcome.words == [
        "rank 1: no verdict from rank 0 (x, pid 7): "
        "it gave none within 1 s of being found, though it still responds.",
    ]


def test_a_run_without_a_deadline_has_an_hour_or_what_its_parts_may_last() -> None:
    assert patience(PLAIN) == LONGEST
    assert patience(Request("check", way=WayFlags(deadline=5.0))) == 5.0 + SLACK
    assert patience(Request("check", smoke=SmokeFlags(timeout=4000.0))) > 3 * 4000.0
    assert patience(Request("check", way=WayFlags(timeout=1000.0))) > 10 * 1000.0
