"""Measurements of `doctor` alone: its start, its work for each further host, its steps, its probe."""

import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Sequence
from statistics import median

from benchmarks.contenders import Contender
from benchmarks.meter import measure, work
from benchmarks.split import MARK
from benchmarks.table import rows
from doctor.api import Ask
from doctor.judge.examine import facts_of
from doctor.judge.playbook import load_exam, select
from doctor.judge.registry import find_checks
from doctor.probe import script
from doctor.transport import Script
from tests.lab import Lab

STEPS = {
    "start": "interpreter, imports",
    "connect": "connect (all hosts: first dialled to last logged in)",
    "probe": "probe (from then until the last answer)",
    "mesh": "mesh",
    "judge": "judge",
    "report": "report",
    "rest": "the rest: targets, checks, recording",
}
PROBES = 10


def marginal(lab: Lab, fewer: Contender, more: Contender, few: int, many: int, rounds: int = 3) -> float:
    """Seconds of CPU that each further host costs the controller."""
    pairs = []
    for _ in range(rounds):
        low = measure(lab, fewer.argv, lab.hosts[:few]).cpu
        high = measure(lab, more.argv, lab.hosts).cpu
        pairs.append((high - low) / (many - few))
    return median(pairs)


def help_seconds(lab: Lab, times: int = 10) -> float:
    walls = []
    for _ in range(times):
        began = time.monotonic()
        lab.doctor("--help")
        walls.append(time.monotonic() - began)
    return median(walls)


def probe_alone(lab: Lab) -> list[tuple[str, str, str]]:
    """The probe of `--exam host` without SSH, run on one host several times in a row."""
    host = lab.hosts[0]
    token = secrets.token_hex(8)
    exam = load_exam("host", found := find_checks().checks)
    chosen, _ = select(found, exam, (), ())
    asked_facts = facts_of(chosen)
    asked = script(asked_facts, Ask(host.name, lab.names, (29500,)), token)
    before, began, cpu = work([host]), time.monotonic(), 0.0
    for _ in range(PROBES):
        cpu += _run(host.enter(["sh", "-s"]), asked)
    wall = (time.monotonic() - began) / PROBES
    after = work([host])
    made = (after.processes - before.processes - 1) / PROBES
    cpu += after.cpu - before.cpu
    facts = f"{len(asked_facts)} facts"
    return [
        (
            f"the probe on a host ({facts}, {len(asked.stdin) / 1024:.1f} KB), wall",
            f"{1000 * wall:.0f} ms",
            "",
        ),
        ("… CPU of the host", f"{1000 * cpu / PROBES:.0f} ms", ""),
        ("… processes it makes", f"{made:.0f}", ""),
    ]


def _run(argv: Sequence[str], asked: Script) -> float:
    """CPU seconds of one run. Its stdin stays open until the last line, as a transport keeps it."""
    # In a session of its own: if its stdin ends early, the probe ends its whole session.
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(asked.stdin)
    process.stdin.flush()
    for line in process.stdout:
        if line == asked.last_line + b"\n":
            break
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)  # reaped here, not by Popen
    process.stdin.close()
    process.stdout.close()
    return usage.ru_utime + usage.ru_stime


def split(lab: Lab, nodeset: str, rounds: int = 3) -> str:
    """The steps of `doctor check`, median of several runs."""
    seen: dict[str, list[float]] = {step: [] for step in STEPS}
    walls: list[float] = []
    _, _, *arguments = lab.doctor_argv("check", nodeset)
    for _ in range(rounds):
        sample = measure(lab, [sys.executable, "-m", "benchmarks.split", *arguments[1:]], lab.hosts)
        line = next((x for x in sample.output.splitlines() if x.startswith(MARK)), None)
        if line is None:
            return f"doctor check, step by step: it ended with {sample.rc}"
        spent = json.loads(line.removeprefix(MARK))
        for step in STEPS:
            seen[step].append(spent[step])
        walls.append(sample.wall)
    table = [(text, f"{median(seen[step]):.2f} s", "") for step, text in STEPS.items()]
    return rows(
        f"doctor check, {len(lab.hosts)} hosts, step by step",
        [*table, ("wall", f"{median(walls):.2f} s", "")],
    )
