"""A smoke agent to talk to: the shipped program on this machine, with ranks that a test controls."""

import json
import os
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil

from doctor.smoke.agents import smoke_script
from doctor.smoke.onhost.shape import CellShape
from doctor.transport import SessionEnd
from tests.support.cases import from_cases
from tests.support.mesh_session import LocalSession

# Instead of rank.py: each rank does what $ACT says, by default "sleep".
RANK = from_cases(__file__, "RANK", str)
PATIENCE = 90.0
"""Seconds: importing torch alone takes half a minute on a busy machine."""
STAND_INS = {"rank": RANK, "devices": ""}
# Instead of torch, which is slow to import.
TORCH = "__version__ = '9.9'"
STORE = from_cases(__file__, "STORE", str)
JOINING = from_cases(__file__, "JOINING", str)


class Agent:
    """One agent. `folder` holds the modules that replace torch; it is also its HOME and TMPDIR."""

    def __init__(
        self,
        folder: Path,
        modules: Mapping[str, str] | None = None,
        torch: str | None = TORCH,
        store: str = STORE,
        python: str | None = sys.executable,
        path: str | None = None,
    ) -> None:
        self.folder = folder
        self.modules = folder / "modules"
        self.home = folder / "home"
        self.mark = uuid.uuid4().hex
        self.heard: list[dict[str, Any]] = []
        self.ended: SessionEnd | None = None
        self.beating = True
        self.lease = 10.0
        self.modules.mkdir()
        self.home.mkdir()
        if torch is not None:
            (self.modules / "torch").mkdir()
            (self.modules / "torch" / "__init__.py").write_text(torch)
            (self.modules / "torch" / "distributed.py").write_text(store)
        before = dict(os.environ)
        os.environ.update(DOCTOR_TEST_MARK=self.mark, TMPDIR=str(self.home), HOME=str(self.home))
        if path is not None:
            os.environ["PATH"] = path + ":" + os.environ["PATH"]
        try:
            script = smoke_script(python, STAND_INS if modules is None else modules)
            self.session = LocalSession({"here": script})
            self.until("ready")
        finally:
            os.environ.clear()
            os.environ.update(before)

    def start(
        self, ranks: int = 1, act: str | None = None, told: Mapping[str, Any] | None = None, **changed: Any
    ) -> None:
        env = {"PYTHONPATH": str(self.modules)} | ({} if act is None else {"ACT": act})
        env |= changed.pop("env", {})
        self.send(
            **{
                "do": "start",
                "ranks": [{"place": n, "local": n, "device": None, "rank": n + 10} for n in range(ranks)],
                "cell": 0,
                "shape": CellShape(ranks, 1, (ranks,), 3, 1),
                "python": sys.executable,
                "env": env,
                "timeout": 60,
                "inject": [],
                "address": "127.0.0.1",
                "head": "127.0.0.1",
                "store": False,
                "lease": self.lease,
            }
            | changed
            | dict(told or {})
        )

    def send(self, **told: Any) -> None:
        self.write(json.dumps(told).encode())

    def write(self, line: bytes) -> None:
        self.session.send("here", line)

    def hear(self, seconds: float) -> dict[str, Any] | None:
        if self.beating:
            self.send(do="beat")
        event = self.session.receive(min(seconds, 2))
        if isinstance(event, SessionEnd):
            self.ended = event
        elif event is not None and event.text:
            said: dict[str, Any] = json.loads(event.text)
            self.heard.append(said)
            return said
        return None

    def until(
        self, say: str, true: Callable[[dict[str, Any]], bool] = lambda _: True, seconds: float = PATIENCE
    ) -> dict[str, Any]:
        """The next message of this kind."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and self.ended is None:
            said = self.hear(left)
            if said and said["say"] == say and true(said):
                return said
        raise AssertionError(f"it did not say {say}: {self.heard[-5:]} {self.ended}")

    def said(self, say: str) -> list[dict[str, Any]]:
        return [said for said in self.heard if said["say"] == say]

    def event(self, ev: str, seconds: float = PATIENCE) -> dict[str, Any]:
        found: dict[str, Any] = self.until("event", lambda said: said["event"].get("ev") == ev, seconds)[
            "event"
        ]
        return found

    def page(self, true: Callable[[dict[str, Any]], bool], seconds: float = PATIENCE) -> dict[str, Any]:
        """The next line of pages whose first rank meets this condition."""
        return self.until("pages", lambda said: bool(said["ranks"]) and true(said["ranks"][0]), seconds)

    def spawned(self) -> dict[str, int]:
        pids: dict[str, int] = self.until("spawned")["pids"]
        return pids

    def stop(self) -> None:
        self.send(do="stop")
        self.until("bye", seconds=20)

    def close(self) -> None:
        self.session.close()

    # What is left of it.

    def pids(self) -> dict[int, str]:
        """Its living descendants, with their command lines."""
        return {pid: line for pid, line in processes(self.mark) if "which" not in line}

    def agent_pid(self) -> int:
        return next(pid for pid, line in self.pids().items() if line.endswith("onhost.agent"))

    def forkserver_pid(self) -> int:
        return min(pid for pid, line in self.pids().items() if line.endswith("onhost.forkserver"))

    def gone_within(self, seconds: float) -> bool:
        until = time.monotonic() + seconds
        while self.pids():
            if time.monotonic() >= until:
                return False
            time.sleep(0.02)
        return True

    def left_files(self) -> list[str]:
        return [str(path) for path in (*self.home.rglob("*"), *self.modules.rglob("*.pyc"))]


Open = Callable[..., Agent]


def agents(folder: Path) -> Iterator[Open]:
    """Opens agents for a test; nothing of them may be left afterwards."""
    opened: list[Agent] = []

    def start(**options: Any) -> Agent:
        own = folder / f"agent{len(opened)}"
        own.mkdir()
        opened.append(Agent(own, **options))
        return opened[-1]

    yield start
    for each in opened:
        each.close()
        assert each.gone_within(5), each.pids()
        assert each.left_files() == []


def processes(mark: str) -> Iterator[tuple[int, str]]:
    for process in psutil.process_iter(["environ", "cmdline"]):
        if (process.info["environ"] or {}).get("DOCTOR_TEST_MARK") == mark:
            yield process.pid, " ".join(process.info["cmdline"] or ())
