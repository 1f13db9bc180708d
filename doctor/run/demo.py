"""Bundled recordings, and the progress that their runs showed."""

from __future__ import annotations

import gzip
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from doctor.errors import UsageError, suggest
from doctor.recording import Recording, decoded
from doctor.run.progress import ProgressLine
from doctor.smoke.headway import SMOKE, training
from doctor.smoke.result import SmokeResult
from doctor.stage import Stage

FOLDER = Path(__file__).parent.parent / "demos"
TRAIN = "doctor preflight 'node[1-4]' --ranks-per-host 2 --python /opt/train/bin/python"


@dataclass(frozen=True, slots=True)
class Demo:
    title: str
    command: str
    """The command that made the recording."""


DEMOS: Mapping[str, Demo] = {
    "gpus": Demo("eight servers with NVIDIA GPUs, four of them sick", "doctor check 'node[1-8]' --exam full"),
    "npus": Demo("a rack of Ascend NPUs, five servers of it sick", "doctor check 'node[1-8]' --exam full"),
    "hang": Demo("a training in which a rank hangs (on purpose)", f"{TRAIN} --inject stuck@3:12"),
    "healthy": Demo("four healthy hosts, and their training", TRAIN),
}
"""The first one is shown if none is named."""
HANGS: Mapping[str, Demo] = {
    "loader": Demo("a job that hangs, and the rank for which it waits", "doctor hang 'node[1-4]'"),
}
"""Demos of `doctor hang`."""
ALL_DEMOS: Mapping[str, Demo] = {**DEMOS, **HANGS}
LASTS = 4.0
"""Seconds that a demo plays if somebody watches."""


def load_demo(name: str) -> Recording:
    if name not in DEMOS:
        hint = suggest(name, ALL_DEMOS).capitalize()
        known = ", ".join(ALL_DEMOS)
        raise UsageError(f"There is no demo {name[:60]!r}. {hint}".strip(), f"There are {known}.")
    path = FOLDER / f"{name}.run.json.gz"
    return decoded(gzip.decompress(path.read_bytes()), path)


def evidence_of(name: str) -> Path:
    """The file with what `doctor hang` saw."""
    return FOLDER / f"{name}.hang.json.gz"


def play(recorded: Recording, line: ProgressLine) -> None:
    """Play the progress on a terminal only: a log gets the report at once."""
    stages = list(stages_of(recorded)) if line.live else []
    try:
        for stage in stages:
            line(stage)
            time.sleep(LASTS / len(stages))
    finally:
        line.clear()


def stages_of(recorded: Recording) -> Iterator[Stage]:
    """The stages of the run in order, without the times that they took."""
    hosts = [host.name for host in recorded.hosts]
    for done in range(len(hosts) + 1):
        doing = f"{done}/{len(hosts)} answered"
        yield Stage("hosts", doing, done, len(hosts), waiting=hosts[done:])
    links = len(recorded.mesh.links) if recorded.mesh else 0
    for done in dict.fromkeys((links // 3, links * 2 // 3, links)):
        yield Stage("network", f"{done}/{links} connections", done, links)
    for run in recorded.smoke:
        yield from _training(run)


def _training(run: SmokeResult) -> Iterator[Stage]:
    plan = run.plan
    yield Stage(SMOKE, f"starting {len(plan.seats)} ranks", of=plan.steps)
    for step in run.ranks[0].steps[::2]:
        yield training(plan, step.step + 1, step.loss)
