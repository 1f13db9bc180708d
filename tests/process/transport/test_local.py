"""Scripts and sessions on this machine behave as they do over SSH, and leave no process behind."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import psutil
import pytest

from doctor.model import Answer, AnswerEnd
from doctor.transport import Line, Script
from doctor.transport.local import LocalTransport
from tests.support.paths import ROOT

DONE = b"DONE"


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


def test_a_command_that_kills_itself(transport: LocalTransport) -> None:
    assert one(transport, Script("kill -9 $$", b"", DONE)).rc == 137


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


def test_closing_needs_no_thread(transport: LocalTransport, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.12 and later start none while they exit."""

    def at_exit(_: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    session = transport.open({"here": Script("sleep 60 & echo $! $$; wait", b"", b"")})
    line = session.receive(5)
    assert isinstance(line, Line)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", at_exit)
        transport.close()
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
