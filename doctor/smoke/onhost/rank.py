"""One rank, from the start of the forked child to its end: its reports are JSON lines."""

from __future__ import annotations

import faulthandler
import importlib
import json
import os
import platform
import signal
import threading
import time
import traceback
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from doctor.smoke.onhost import audit, bandwidth, collectives, evidence
from doctor.smoke.onhost.comm import Comm, join
from doctor.smoke.onhost.framework import Framework
from doctor.smoke.onhost.page import RankPage
from doctor.smoke.onhost.shape import CellShape
from doctor.smoke.onhost.sides import side
from doctor.smoke.onhost.streams import fingerprint, numpy
from doctor.smoke.onhost.train import Trainer

if TYPE_CHECKING:  # Python 3.8 cannot evaluate this
    from collections.abc import Callable

    from doctor.smoke.onhost.comm import Say

LONGEST_LINE = 4096
GOLDEN_RUNS = 3
WORK: tuple[tuple[str, Callable[[Trainer], None]], ...] = (
    ("collectives", lambda trainer: collectives.run(trainer.comm)),
    ("train", lambda trainer: trainer.run()),
    ("audit", audit.run),
    ("bandwidth", lambda trainer: bandwidth.run(trainer.comm)),
)
"""The work that the ranks do together, by phase; the last phase needs two hosts, or an acceptance test."""


def run(
    config: dict[str, Any], place: int, page: RankPage, events_fd: int, go_fd: int, stack_fd: int
) -> None:
    """Do everything, then end the process: no code of the parent may run in its forked child."""
    say = _sayer(events_fd)
    code = 0
    try:
        _live(config, place, page, say, go_fd, stack_fd)
    except BaseException as error:  # even SystemExit: a rank reports whatever ends it
        code = 3
        text = {"type": type(error).__name__, "text": str(error)[:2000]}
        say({"ev": "error", **text, "trace": traceback.format_exc()[-4000:]})
        with suppress(OSError):
            os.write(2, "\n".join(evidence.said("NCCL WARN")).encode())
    os._exit(code)


def _live(config: dict[str, Any], place: int, page: RankPage, say: Say, go_fd: int, stack_fd: int) -> None:
    def enter(phase: str) -> None:
        page.enter_phase(phase)
        say({"ev": "phase", "phase": phase})

    enter("start")
    faulthandler.register(signal.SIGUSR2, file=stack_fd, all_threads=True, chain=False)
    told: list[Any] = [tuple(each) if isinstance(each, list) else each for each in config["shape"]]
    shape = CellShape(*told)
    timeout = config["timeout"]
    module = importlib.import_module(side(config["framework"]).MODULE)
    framework: Framework = module.framework_of(shape.backend, config["local"], config["device"])
    os.environ.update(framework.environment(timeout))  # libraries of devices read them when they are loaded
    framework.choose_core(place)
    say(_start(framework))
    enter("ready")
    address, port = _go(go_fd)
    enter("join")
    # Injected faults; runs without them do not load the module.
    faults = importlib.import_module("doctor.smoke.onhost.inject") if config["inject"] else None
    if faults:
        faults.before_join(config["inject"], place, page)
    framework.reach(address, port, config["cell"], timeout)
    page.enter_phase("join", 1)
    framework.meet(place, shape.world, timeout)
    page.enter_phase("join", 2)
    began = time.perf_counter()
    comm = Comm(shape, place, page, framework, framework.make_groups(shape, place, timeout), say)
    comm.forming = time.perf_counter() - began
    page.enter_phase("join", 3)
    join(comm)
    _answer(go_fd, framework, say)
    trainer = Trainer(comm)
    if faults:
        faults.apply(config["inject"], comm, trainer, page)
    for phase, work in WORK:
        if phase != "bandwidth" or len(shape.hosts) > 1 or shape.sweep:
            enter(phase)
            work(trainer)
    page.enter_phase("done")
    say({"ev": "done"})
    _stay()


def _stay() -> None:
    """Live on until the agent ends all: others may wait for what a thread of this rank has yet to send."""
    while True:
        signal.pause()


def _start(framework: Framework) -> dict[str, Any]:
    """Set up the rank, and examine what it will rely on."""
    framework.set_up()
    framework.be_deterministic()
    framework.share_memory()
    versions = {"python": platform.python_version(), **framework.versions()}
    versions["cpu"] = f"{framework.instructions()} {_cpu_model()}".strip()
    if numpy is not None:
        versions["numpy"] = str(numpy.__version__)
    return {
        "ev": "start",
        "versions": versions,
        "streams": fingerprint(framework),
        "golden": [audit.golden(framework) for _ in range(GOLDEN_RUNS)],
        "product": framework.product,
    }


def _cpu_model() -> str:
    """The model of the processor: different models may round differently."""
    with suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
        for line in lines:
            name, _, value = line.partition(":")
            if name.strip() in ("model name", "CPU part"):
                return value.strip()
    return ""


def _go(go_fd: int) -> tuple[str, int]:
    """Wait until the controller says where the store is."""
    line = b""
    while not line.endswith(b"\n"):
        more = os.read(go_fd, LONGEST_LINE)
        if not more or len(line) > LONGEST_LINE:
            raise RuntimeError("the agent closed the rank's pipe before it said where to join")
        line += more
    told = json.loads(line)
    return str(told["address"]), int(told["port"])


def _answer(go_fd: int, framework: Framework, say: Say) -> None:
    """Report on request what the backend knows about a hang. A thread does it: the rank itself hangs."""
    if framework.on_cpu:
        return

    def listen() -> None:
        while os.read(go_fd, LONGEST_LINE):
            say({"ev": "backend", "text": framework.evidence()})

    threading.Thread(target=listen, daemon=True).start()


def _sayer(fd: int) -> Say:
    """A function that writes events as JSON lines, whole lines only."""

    def say(event: dict[str, Any]) -> None:
        line = memoryview(json.dumps(event, allow_nan=False).encode() + b"\n")
        while line:
            line = line[os.write(fd, line) :]

    return say
