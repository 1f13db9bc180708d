"""The probe's script, run by a shell of this machine."""

import os
import selectors
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import psutil

from doctor.api import Ask, Fact
from doctor.model import Answer, AnswerEnd
from doctor.probe import HostAnswer, read, script

NOBODY = 65534
TOKEN = "0123456789abcdeffedcba9876543210"
SHELLS = {"dash": ("dash", "-s"), "bash": ("bash", "-s"), "busybox": ("busybox", "sh", "-s")}
HERE = [name for name, command in SHELLS.items() if shutil.which(command[0])]


def start(
    facts: Sequence[Fact[Any]],
    shell: str,
    env: Mapping[str, str] | None = None,
    *,
    sudo: bool = False,
    as_root: bool = True,
    ports: tuple[int, ...] = (),
) -> subprocess.Popen[bytes]:
    """Start the probe; its stdin stays open."""
    ordinary: dict[str, Any] = {}
    if not as_root and os.geteuid() == 0:
        ordinary = {"user": NOBODY, "group": NOBODY, "extra_groups": ()}
    text = script(facts, Ask("here", ports=ports), TOKEN, sudo=sudo).stdin
    process: subprocess.Popen[bytes] = subprocess.Popen(
        (str(shutil.which(SHELLS[shell][0])), *SHELLS[shell][1:]),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **(env or {})},
        start_new_session=True,
        **ordinary,
    )
    assert process.stdin is not None
    process.stdin.write(text)
    process.stdin.flush()
    return process


def answer(process: subprocess.Popen[bytes], seconds: float = 20) -> Answer:
    """Its output up to its last line, as a transport receives it; then its stdin is closed."""
    assert process.stdin
    assert process.stdout
    assert process.stderr
    began = time.time()
    heard = {process.stdout.fileno(): b"", process.stderr.fileno(): b""}
    end = AnswerEnd.TIMEOUT
    with selectors.DefaultSelector() as selector:
        for descriptor in heard:
            selector.register(descriptor, selectors.EVENT_READ)
        while selector.get_map() and time.time() - began < seconds:
            for key, _ in selector.select(0.2):
                data = os.read(key.fd, 65536)
                heard[key.fd] += data
                if not data:
                    selector.unregister(key.fd)
            if f"{TOKEN} done\n".encode() in heard[process.stdout.fileno()]:
                end = AnswerEnd.DONE
                break
    process.stdin.close()
    try:
        rc = process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        rc = process.wait()
    out, err = heard.values()
    process.stdout.close()
    process.stderr.close()
    return Answer("here", out, err, rc, end, began, time.time())


def ask(
    facts: Sequence[Fact[Any]], shell: str, env: Mapping[str, str] | None = None, **how: Any
) -> HostAnswer:
    """The answer of a probe that was started `how` it says."""
    begun = start(facts, shell, env, **how)
    heard = read(answer(begun), facts, TOKEN)
    assert isinstance(heard, HostAnswer), heard
    return heard


def session(leader: int) -> list[int]:
    """The processes of a session, except zombies."""
    found = []
    for pid in psutil.pids():
        with suppress(ProcessLookupError, psutil.NoSuchProcess):
            if os.getsid(pid) == leader and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                found.append(pid)
    return found
