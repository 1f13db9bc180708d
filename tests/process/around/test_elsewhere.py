"""Processes that the program on another host ends, and those that it leaves alone."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from doctor.around.onhost.agent import DENIED, FOREIGN, ITSELF, KILL, TERM, end_ranks

PORT = 40022
STUBBORN = ("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 1; done")
PLAIN = ("sh", "-c", "echo ready; exec sleep 60")


@pytest.fixture
def children() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def begun(children: ExitStack, words: tuple[str, ...], port: int) -> subprocess.Popen[bytes]:
    env = {"PATH": "/usr/bin:/bin", "SSH_CONNECTION": f"198.18.0.1 {port} 198.18.0.2 22"}
    child = subprocess.Popen(words, env=env, stdout=subprocess.PIPE)
    children.callback(child.wait)
    children.callback(child.kill)
    assert child.stdout is not None
    children.callback(child.stdout.close)
    assert child.stdout.readline()
    return child


def ended(child: subprocess.Popen[bytes], *, began: float = 0.0, own: bool = False) -> str:
    rank = {"pid": child.pid, "start": time.time() - began, "own": own}
    return end_ranks([rank], {PORT}, 0.0, 0.5)[str(child.pid)]


def test_what_came_by_our_connection_is_asked_to_end(children: ExitStack) -> None:
    assert ended(begun(children, PLAIN, PORT)) == TERM


def test_what_does_not_end_is_killed(children: ExitStack) -> None:
    child = begun(children, STUBBORN, PORT)
    assert ended(child) == KILL
    assert child.wait(5) == -9


def test_what_came_by_another_connection_stays(children: ExitStack) -> None:
    child = begun(children, PLAIN, PORT + 1)
    assert ended(child) == FOREIGN
    assert child.poll() is None
    assert ended(child, own=True) == TERM


def test_a_later_process_with_the_number_stays(children: ExitStack) -> None:
    child = begun(children, PLAIN, PORT)
    assert ended(child, began=3600) == ITSELF
    assert child.poll() is None


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_what_belongs_to_another_user_stays(children: ExitStack) -> None:
    child = begun(children, PLAIN, PORT)
    pid = os.fork()
    if pid == 0:
        try:
            os.setuid(65534)
            os._exit(0 if ended(child, own=True) == DENIED else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert child.poll() is None
