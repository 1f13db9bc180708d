"""What was seen of a trial, and whether that is right."""

import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.support.command import relays
from tests.trials.command.kinds import ON_HOSTS, Draw
from tests.trials.outcome import Outcome, sentence, trouble

PATIENCE = 300.0
STOPS_AT = ("kill", "raise", "sleep", "loader", "skip", "memory", "shm")
"""Faults after which nothing more is printed."""
MUTE = ("loop", "python", "deepspeed")
"""They tell nobody which of their processes was killed or raised."""


@dataclass(frozen=True, slots=True)
class Seen:
    """`left` are processes that should have ended. `runs`: the command had begun when doctor was killed."""

    out: str
    code: int
    report: Mapping[str, Any] | None
    left: int
    runs: bool = True
    err: str = ""


def left(mark: str) -> int:
    """How many processes are left when they should have ended."""
    until = time.monotonic() + PATIENCE
    while (found := len(relays(mark))) and time.monotonic() < until:
        time.sleep(0.2)
    return found


def parsed(text: str) -> Mapping[str, Any] | None:
    return json.loads(text) if text.strip() else None


def judged(draw: Draw, seen: Seen, seconds: float) -> Outcome:
    kind, report = draw.kind, seen.report
    found = trouble(report) if report else []
    accused = {each["rank"] for each in found if each["because"] is None and each["status"] == "fail"}
    attempt = report["around"]["attempts"][0] if report and report["around"]["attempts"] else {}
    flaws = []
    if not (is_equal(seen.out, draw) or not (seen.runs or seen.out)):
        flaws.append(f"output: {seen.out[-200:]!r}")
    if seen.left:
        flaws.append(f"{seen.left} processes are left")
    if seen.code not in draw.codes:
        flaws.append(f"exit code {seen.code}")
    # Slurm kills what remains 3 s after TERM, and a host without a network keeps srun longer
    cut_off = kind.ends == "network" and draw.launcher == "srun"
    if not cut_off and (report is not None) is (kind.ends == "kill"):
        flaws.append("report")
    if kind.fault == "nan" and "NaN" not in str(attempt.get("losses")):
        flaws.append("NaN is not told")
    if kind.ends == "interrupted" and not attempt.get("by_others"):
        flaws.append(f"nobody is said to have ended it: {attempt.get('why')}")
    if kind.says and kind.says not in f"{json.dumps(report)}{seen.err}":
        flaws.append(f"not told: {kind.says}; {seen.err[-300:]}")
    told = "SIGKILL" if draw.launcher in ON_HOSTS else "lack of memory"
    if kind.fault == "memory" and told not in str(found):  # hosts of the lab give no log of their kernel
        flaws.append("memory is not told")
    nobody = {None, 0} if kind.fault == "nan" else {None} if draw.launcher in MUTE and kind.names else set()
    allowed = ({draw.victim} if kind.names else set()) | nobody
    if kind.fault == "memory":  # mpirun may not say which process it lost: then it is suspected
        accused |= {
            each["rank"] for each in found if each["because"] is None and "oom-kill" in each["summary"]
        }
    named = not kind.names or draw.victim in accused or (draw.launcher in MUTE and kind.ends != "doctor")
    return Outcome(
        fault=draw.row,
        number=draw.number,
        place=draw.place,
        detected=not flaws,
        named=named,
        alone=accused <= allowed,
        latency=None,
        seconds=seconds,
        code=seen.code,
        said=(*flaws, *map(sentence, found)),
    )


def is_equal(text: str, draw: Draw) -> bool:
    """Whether the output is what the program prints, byte for byte: all of it, or until its fault."""
    kind, at = draw.kind, draw.at
    last = at if kind.fault in STOPS_AT else kind.steps
    flood = "".join(f"line {n}\n" for n in range(int(kind.more.get("FLOOD", 0))))
    lines = (
        f"{flood}step {n} loss {float('nan') if kind.fault == 'nan' and n >= at else 4 / (n + 1):.4f}\n"
        for n in range(0 if kind.fault == "silent" else min(last, 5000))
    )
    whole = "".join(lines)
    if draw.launcher == "deepspeed":  # it writes its own log to stdout
        text = re.sub(r"^\[\d{4}-\d\d-\d\d .*\n", "", text, flags=re.MULTILINE)
    return whole.startswith(text) and bool(text) if kind.steps > 1000 else text == whole
