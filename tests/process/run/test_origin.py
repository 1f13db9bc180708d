"""What the kernel shows of processes that a command has started, on real processes and connections."""

import math
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from doctor.job.launch.brief import brief
from doctor.live.evidence import JobMember
from doctor.live.onhost import origin, proc
from doctor.live.onhost.launchers import Launchers
from doctor.live.onhost.origin import BELOW, CAME, STEP
from doctor.live.onhost.tree import Tree
from doctor.model import Host
from doctor.run.own import own_command
from tests.support.cases import cases, from_cases
from tests.support.command import started

CHILD = from_cases(__file__, "CHILD", str)
NOBODY = 65534


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as each:
        yield each


def asked(**more: Any) -> dict[str, Any]:
    nothing = {"boot": origin.boot(), "processes": [], "ends": [], "uid": os.getuid(), "slurm": None}
    return {**nothing, "names": origin.NAMES, **more}


def shown(about: dict[str, Any], pid: int) -> str:
    import msgspec

    rows = [row for each in proc.pids() if (row := proc.row((each, True), origin.NAMES))]
    tree = Tree(Launchers(msgspec.to_builtins(brief())), rows)
    return origin.Proofs(about, tree, math.inf).of(pid)


def connected(stack: ExitStack, host: str, user: int = os.getuid()) -> tuple[int, str]:
    """A process that holds a connection from us, and that connection as the command has it."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = stack.enter_context(socket.socket(family))
    listener.bind((host, 0))
    listener.listen()
    code = CHILD.format(host=host, port=listener.getsockname()[1], user=user)
    child = stack.enter_context(started([sys.executable, "-c", code]))
    ours = stack.enter_context(listener.accept()[0])
    assert child.stdout is not None
    assert child.stdout.readline()
    ends = [origin.plain_end(*end[:2]) for end in (ours.getsockname(), ours.getpeername())]
    return child.pid, " ".join(ends)


def child_of(pid: int) -> int:
    with open(f"/proc/{pid}/task/{pid}/children") as names:
        return int(names.read().split()[0])


def test_a_process_of_the_command_is_known_by_its_identity() -> None:
    with started(["sleep", "60"]) as child:
        own = origin.identity(child.pid)
        assert own
        assert shown(asked(processes=[own]), child.pid) == BELOW
        assert shown(asked(processes=[[own[0], own[1], "1"]]), child.pid) == "", (
            "a later process with its PID"
        )
        assert shown(asked(processes=[["pid:[1]", *own[1:]]]), child.pid) == "", "in another container"
        assert shown(asked(processes=[own], boot="another machine"), child.pid) == ""
        assert shown(asked(), child.pid) == ""


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_what_descends_from_the_other_end_of_a_connection_is_the_commands(
    stack: ExitStack, host: str
) -> None:
    pid, end = connected(stack, host)
    assert shown(asked(ends=[end]), child_of(pid)) == CAME
    first, port, *there = end.split()
    for other in (
        " ".join([first, str(int(port) + 1), *there]),
        " ".join(["127.0.0.9", port, *there]),
    ):
        assert shown(asked(ends=[other]), child_of(pid)) == "", other


@pytest.mark.skipif(os.getuid() != 0, reason="only root can start processes of another user")
def test_a_connection_of_another_user_shows_nothing(stack: ExitStack) -> None:
    """Anybody can connect to a port of the command."""
    pid, end = connected(stack, "127.0.0.1", user=NOBODY)
    assert shown(asked(ends=[end]), child_of(pid)) == ""


def test_a_process_that_a_session_set_free_is_known_by_the_connection_of_the_session(
    stack: ExitStack,
) -> None:
    pid, end = connected(stack, "127.0.0.1")
    free = stack.enter_context(started(["sleep", "60"], env={**os.environ, "SSH_CONNECTION": end}))
    assert shown(asked(ends=[end]), free.pid) == CAME
    assert shown(asked(ends=[end.replace(end.split()[1], "1")]), free.pid) == ""
    other = end.replace("127.0.0.1", "127.0.0.9")
    assert shown(asked(ends=[other]), free.pid) == "", "the kernel knows no such connection"
    claims = stack.enter_context(
        started(["sleep", "60"], env={"SSH_CONNECTION": other, "PATH": os.environ["PATH"]})
    )
    assert shown(asked(ends=[other]), claims.pid) == "", "what it says of itself is no proof"
    assert pid


@pytest.mark.skipif(os.getuid() != 0, reason="only root can start processes of another user")
def test_the_variables_of_another_user_show_nothing(stack: ExitStack) -> None:
    _, end = connected(stack, "127.0.0.1")
    env = {"SSH_CONNECTION": end, "SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "PATH": os.environ["PATH"]}
    claims = stack.enter_context(started(["sleep", "60"], env=env, user=NOBODY))
    slurm = {"job": "7", "step": "0", "sruns": []}
    assert shown(asked(ends=[end], slurm=slurm), claims.pid) == ""
    own = stack.enter_context(started(["sleep", "60"], env=env))
    assert shown(asked(slurm=slurm), own.pid) == STEP


@cases
def test_steps_of_slurm(slurm: dict[str, Any], how: str) -> None:
    env = {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "PATH": os.environ["PATH"]}
    env |= {"SLURM_SRUN_COMM_HOST": "login", "SLURM_SRUN_COMM_PORT": "40100"}
    with started(["sleep", "60"], env=env) as child:
        assert shown(asked(slurm=slurm), child.pid) == how


def test_without_the_command_nothing_is_marked() -> None:
    with started(["sleep", "60"], stdout=subprocess.DEVNULL) as child:
        assert shown(asked(), child.pid) == ""


def test_no_other_host_can_claim_a_connection_that_leads_back_here(stack: ExitStack) -> None:
    """Ranks of one host talk over the loopback: a hostile host says that its processes came by that."""
    child, ends = connected(stack, "127.0.0.1")
    command = own_command(child, [Host("far", "192.0.2.1")], False, {})
    assert command.ends == (" ".join(ends.split()[2:] + ends.split()[:2]),)
    assert command.told("far") is None
    assert not command.started(JobMember(host="far", pid=1, parent=0, job="j", started=CAME))
    here = own_command(child, [Host("here", "localhost"), Host("far", "192.0.2.1")], False, {})
    assert [here.told(name) is not None for name in ("here", "far")] == [True, False]
