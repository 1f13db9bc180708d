"""Hosts with containers and examinations inside them: `dock` is a lab of two hosts with an engine."""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.lab import Lab, missing
from tests.lab.engine import Engine

BOTH = "node[1-2]"
INSIDE = ("--enter", "docker exec -i train")
PODS = ("pod[1-2]", "--enter", "kubectl exec -i {host} --")
PYTHON = ("--python", sys.executable)


@dataclass(frozen=True, slots=True)
class Seen:
    """The result of one examination."""

    code: int
    report: dict[str, Any]
    text: str

    @property
    def trouble(self) -> dict[str, dict[str, Any]]:
        """Check -> its finding, for findings that report a fault."""
        found = [each for each in self.report["findings"] if each["status"] != "unknown"]
        assert len({each["check"] for each in found}) == len(found), self.text
        return {each["check"]: each for each in found}


@dataclass(frozen=True, slots=True)
class Dock:
    lab: Lab
    engine: Engine
    folder: Path

    def argv(self, *args: str) -> list[str]:
        return self.lab.doctor_argv(*args)

    @property
    def environment(self) -> dict[str, str]:
        """The environment, with our kubectl first on the PATH."""
        path = self.lab.environment()["PATH"]
        return {"PATH": f"{self.engine.pods(self.folder / 'bin')}:{path}"}

    def __call__(self, *args: str) -> Seen:
        report = self.folder / "report.json"
        report.unlink(missing_ok=True)
        done = self.lab.doctor(*args, "--json", str(report), env=self.environment)
        assert report.exists(), f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stdout + done.stderr
        return Seen(done.returncode, json.loads(report.read_bytes()), done.stdout)


@pytest.fixture(scope="module")
def docks() -> Iterator[Lab]:
    if reason := missing():
        pytest.skip(reason)
    with Lab(2) as lab:
        yield lab


@pytest.fixture(scope="module")
def engine(docks: Lab) -> Iterator[Engine]:
    with Engine(docks) as engine:
        yield engine


@pytest.fixture
def dock(docks: Lab, engine: Engine, tmp_path: Path) -> Iterator[Dock]:
    """The dock; each test starts without containers."""
    yield Dock(docks, engine, tmp_path)
    engine.remove_all()
