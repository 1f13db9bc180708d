"""Imports the framework once and forks the ranks from that process: each is ready within milliseconds.

A child that is forked while another thread runs can inherit a lock that is never released. So this process
stays single-threaded: what the ranks meet with gets processes of its own, and if the import started
a thread, each rank gets a fresh interpreter instead.

stdin is a file from the agent: the program, then one line of JSON. Reports are JSON lines in a pipe. When the
agent is gone, everything here ends.
"""

import contextlib
import faulthandler
import gc
import importlib.machinery
import json
import mmap
import os
import select
import signal
import subprocess
import sys
import traceback
from typing import TYPE_CHECKING, Any

from doctor.agents.onhost.bundle import command
from doctor.agents.onhost.process import default_signals, die_with_parent
from doctor.smoke.onhost.memory import holding
from doctor.smoke.onhost.page import SIZE, RankPage
from doctor.smoke.onhost.sides import side

if TYPE_CHECKING:  # Python 3.8 cannot evaluate these
    Config = dict[str, Any]
    Seat = dict[str, Any]

RANK = "doctor.smoke.onhost.rank"


def main(program: bytes, head: int) -> None:
    with open(0, "rb", closefd=False) as rest:
        config = json.loads(rest.read().decode("utf-8"))
    if config["seat"] is None:
        ForkServer(program, head, config).serve()
    else:
        _be_alone(config)


class ForkServer:
    def __init__(self, program: bytes, head: int, config: "Config") -> None:
        self.program = program
        self.head = head
        self.config = config
        self.pid = os.getpid()
        self.seats = config["seats"]  # type: list[Seat]
        self.indices = {}  # type: dict[int, int]
        self.stores = set()  # type: set[int]
        self.bell, self.ring = os.pipe()
        self.kept = []  # type: list[Any]

    def serve(self) -> None:
        die_with_parent()
        name = wanted = str(self.config["framework"])
        try:
            version = side(name).load()
            wanted = f"the smoke run with {name} {version} and Python {sys.version.split()[0]}"
            for module in (RANK, side(name).MODULE):
                importlib.import_module(module)
        except BaseException as error:
            traceback.print_exc()
            words = f"{type(error).__name__}: {error}"[:2000]
            _report(
                self.config,
                "failed",
                text=f"{sys.executable} cannot import {wanted}: {words}{_shadow(name, error)}",
            )
            os._exit(1)
        _report(self.config, "imported", path=sys.executable, version=version)
        for descriptor in (self.bell, self.ring):
            os.set_blocking(descriptor, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self.ring)
        gc.collect()
        forking = len(os.listdir("/proc/self/task")) == 1
        for number in range(len(_meetings(self.config))):
            self.stores.add(self._fork(None, number) if forking else self._start(None, number))
        for index, seat in enumerate(self.seats):
            self.indices[self._fork(seat) if forking else self._start(index)] = index
        _close(self.seats)
        _report(self.config, "spawned", pids={index: pid for pid, index in self.indices.items()})
        self._watch()

    def _watch(self) -> None:
        """Report every process that ends, until the agent closes its side."""
        poll = select.poll()
        poll.register(self.config["life"], select.POLLIN)
        poll.register(self.bell, select.POLLIN)
        while True:
            self._reap()
            for descriptor, _ in poll.poll():
                if descriptor == self.config["life"]:
                    os.killpg(os.getpgrp(), signal.SIGKILL)
                with contextlib.suppress(BlockingIOError):
                    os.read(self.bell, 4096)

    def _reap(self) -> None:
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
            number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
            if pid in self.indices:
                index = self.indices.pop(pid)
                _report(
                    self.config, "exit", index=index, code=code, signal=number, peak=usage.ru_maxrss * 1024
                )
            elif pid in self.stores:
                _report(self.config, "store-ended", code=code, signal=number)

    def _fork(self, seat: "Seat | None", store: int = -1) -> int:
        """Fork a rank, or a store: a child that holds no descriptors of the others and never returns."""
        for buffered in (sys.stdout, sys.stderr):
            buffered.flush()  # otherwise both sides of the fork would write their contents
        pid = os.fork()
        if pid == 0:
            try:
                die_with_parent(self.pid)
                default_signals()
                for descriptor in (self.bell, self.ring, self.config["life"]):
                    os.close(descriptor)
                _close([other for other in self.seats if other is not seat])
                if seat is None:
                    os.close(self.config["pages"])
                    _be_store(self.config, store)
                else:
                    os.close(self.config["report"])
                    _be_rank(self.config, seat)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(3)
        return pid

    def _start(self, index: "int | None", store: int = -1) -> int:
        """Start a store or a rank in an interpreter of its own, which imports the framework again."""
        config = dict(self.config, seat=-1 if index is None else index, number=store, forkserver=self.pid)
        stdin = holding(self.program + json.dumps(config).encode("ascii"))
        seat = None if index is None else self.seats[index]
        output = seat["output"] if seat else 1
        started = subprocess.Popen(
            command(sys.executable, self.program, self.head, __name__),
            stdin=stdin,
            stdout=output,
            stderr=output,
            pass_fds=[seat["events"], seat["go"], seat["stack"], config["pages"]]
            if seat
            else [config["report"]],
        )
        os.close(stdin)
        self.kept.append(started)  # If it were garbage-collected, Python would reap it.
        return started.pid


def _be_alone(config: "Config") -> None:
    """The body of a process that `ForkServer._start` has started."""
    try:
        die_with_parent(config["forkserver"])
        default_signals()
        side(config["framework"]).load()
        if config["seat"] < 0:
            _be_store(config, config["number"])
        seat = config["seats"][config["seat"]]
        seat["output"] = os.dup(1)
        _be_rank(config, seat)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(3)


def _report(config: "Config", what: str, **words: Any) -> None:
    os.write(config["report"], json.dumps(dict(words, what=what)).encode("ascii") + b"\n")


def _meetings(config: "Config") -> "list[Any]":
    """What each process serves with which ranks meet; none on most hosts."""
    return side(config["framework"]).meetings(config["worlds"]) if config["store"] is not None else []


def _be_store(config: "Config", number: int) -> None:
    """Serve, in a process of its own."""

    def say(port: int, cell: "int | None") -> None:
        _report(config, "store", port=port, cell=cell)

    side(config["framework"]).serve(config["store"], config["timeout"], _meetings(config)[number], say)


def _be_rank(config: "Config", seat: "Seat") -> None:
    memory = mmap.mmap(config["pages"], SIZE * len(config["seats"]))
    os.close(config["pages"])
    nothing = os.open(os.devnull, os.O_RDONLY)
    for descriptor, standard in ((nothing, 0), (seat["output"], 1), (seat["output"], 2)):
        os.dup2(descriptor, standard)
    os.close(nothing)
    os.close(seat["output"])
    faulthandler.register(signal.SIGUSR2, file=seat["stack"], all_threads=True, chain=False)
    faulthandler.enable(file=seat["stack"], all_threads=False)
    page = RankPage(memory, seat["index"])
    page.enter_phase("spawned")
    os.write(seat["events"], b'{"ev":"phase","phase":"spawned"}\n')
    run = importlib.import_module(RANK).run
    run(seat["config"], seat["place"], page, seat["events"], seat["go"], seat["stack"])


def _shadow(name: str, error: BaseException) -> str:
    """The file of PYTHONPATH, and not of this interpreter, that stands in for a part of the framework."""
    paths = tuple(path.rstrip("/") + "/" for path in os.environ.get("PYTHONPATH", "").split(":") if path)
    spec, frames = importlib.machinery.PathFinder.find_spec(name), traceback.extract_tb(error.__traceback__)
    files = [spec and spec.origin, getattr(error, "filename", ""), *(each.filename for each in frames)]
    given = [each for each in map(str, files) if each.startswith(paths) and not each.startswith(sys.prefix)]
    return f" (PYTHONPATH gives {given[0]})" if given else ""


def _close(seats: "list[Seat]") -> None:
    for seat in seats:
        for name in ("events", "go", "output", "stack"):
            os.close(seat[name])
