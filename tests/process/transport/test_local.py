"""Scripts and sessions on this machine behave as they do over SSH, and leave no process behind."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator

import psutil
import pytest

from doctor.model import Answer, AnswerEnd, Host, UnreachedKind
from doctor.transport import Line, Script, SessionEnd
from doctor.transport.local import LocalTransport
from doctor.transport.program import OUTPUT_CAP
from tests.support.paths import ROOT

DONE = b"DONE"
HERE = Host("here", "localhost")


@pytest.fixture
def transport() -> Iterator[LocalTransport]:
    made = LocalTransport()
    yield made
    made.close()


def sh(text: str) -> Script:
    return Script("sh -s", (text + "\necho DONE\n").encode(), DONE)


def one(transport: LocalTransport, script: Script, timeout: float = 10) -> Answer:
    [got] = transport.run({"here": script}, timeout)
    assert isinstance(got, Answer), got
    return got


def gone(pid: str) -> bool:
    """Whether a process ends within a moment."""
    until = time.monotonic() + 3
    while time.monotonic() < until:
        try:
            if psutil.Process(int(pid)).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.02)
    return False


def test_a_script_is_answered_with_both_streams(transport: LocalTransport) -> None:
    got = one(transport, sh("echo out; echo err >&2"))
    assert (got.stdout, got.stderr, got.rc, got.end) == (b"out\nDONE\n", b"err\n", 0, AnswerEnd.DONE)


def test_a_command_that_ends_without_its_last_line(transport: LocalTransport) -> None:
    got = one(transport, Script("echo some; exit 7", b"ignored", DONE))
    assert (got.stdout, got.rc, got.end) == (b"some\n", 7, AnswerEnd.DONE)


def test_a_command_that_kills_itself(transport: LocalTransport) -> None:
    assert one(transport, Script("kill -9 $$", b"", DONE)).rc == 137


def test_a_large_stdin_and_a_talkative_reader(transport: LocalTransport) -> None:
    text = b"x" * 99 + b"\n"
    got = one(transport, Script("cat", text * 60_000 + DONE + b"\n", DONE))
    assert got.stdout == text * 60_000 + DONE + b"\n"


def test_a_flood_is_stopped_at_the_cap(transport: LocalTransport) -> None:
    got = one(transport, Script("yes", b"", DONE))
    assert (len(got.stdout), got.end) == (OUTPUT_CAP, AnswerEnd.FLOOD)


def test_the_deadline_ends_the_whole_group(transport: LocalTransport) -> None:
    got = one(transport, sh("trap '' TERM; sleep 60 & echo $! $$; wait"), timeout=0.7)
    assert got.end is AnswerEnd.TIMEOUT
    pids = got.stdout.decode().split()
    assert len(pids) == 2
    assert all(gone(pid) for pid in pids)


def test_what_a_finished_script_leaves_in_its_group_is_ended(transport: LocalTransport) -> None:
    got = one(transport, sh("sleep 60 >/dev/null 2>&1 & echo $!"))
    assert got.end is AnswerEnd.DONE
    assert gone(got.stdout.decode().split()[0])


def test_lines_both_ways(transport: LocalTransport) -> None:
    session = transport.open({"here": Script("cat; echo end >&2; exit 4", b"zero\n", b"")})
    assert session.receive(5) == Line("here", b"zero")
    session.send("here", b"one")
    assert session.receive(5) == Line("here", b"one")
    session.close()


def test_the_end_of_a_program(transport: LocalTransport) -> None:
    session = transport.open({"here": Script("echo bye; echo why >&2; exit 4", b"", b"")})
    assert session.receive(5) == Line("here", b"bye")
    assert session.receive(5) == SessionEnd("here", 4, b"why\n")
    session.close()


def test_an_endless_line(transport: LocalTransport) -> None:
    session = transport.open({"here": Script("head -c 3000000 /dev/zero; sleep 20", b"", b"")})
    ended = session.receive(5)
    assert isinstance(ended, SessionEnd)
    assert ended.unreached is not None
    assert ended.unreached.kind is UnreachedKind.FLOOD
    session.close()


def test_closing_is_quick_and_ends_everything(transport: LocalTransport) -> None:
    session = transport.open({"here": Script("trap '' TERM; sleep 60 & echo $! $$; wait; wait", b"", b"")})
    line = session.receive(5)
    assert isinstance(line, Line)
    begun = time.monotonic()
    transport.close()
    transport.close()
    assert time.monotonic() - begun < 30
    assert all(gone(pid) for pid in line.text.decode().split())
    session.close()


def test_closing_a_session_ends_its_programs(transport: LocalTransport) -> None:
    session = transport.open({"here": Script("sleep 60 & echo $! $$; wait", b"", b"")})
    line = session.receive(5)
    assert isinstance(line, Line)
    session.close()
    assert all(gone(pid) for pid in line.text.decode().split())


def test_no_descriptor_is_left_open(transport: LocalTransport) -> None:
    one(transport, sh("echo hi"))
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        one(transport, sh("echo hi"))
    assert len(os.listdir("/proc/self/fd")) <= before


def test_without_ssh_hosts_paramiko_is_not_imported() -> None:
    program = "import sys, doctor.transport.routing; sys.exit('paramiko' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)
