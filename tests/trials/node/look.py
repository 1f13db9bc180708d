"""One run of the exam, as a prolog or a person at another host starts it."""

import json
import re
import shlex
import subprocess
import sys
import time

from doctor.errors import EXIT_INCONCLUSIVE, EXIT_OK
from tests.lab.container import Container
from tests.lab.controller import REPOSITORY
from tests.trials.node.situation import Situation, Stage, Way
from tests.trials.outcome import Outcome

PATIENCE = 60
"""Seconds after which a prolog gives up."""
DOCTOR = f"PYTHONPATH={REPOSITORY} exec timeout {PATIENCE} {sys.executable} -m doctor"
EXAM = "check --local --exam node -q --no-color"
TOLD = re.compile(r"^(FAIL|CRASH) +(.*)", re.MULTILINE)
"""The first line of the report about each host, in short."""


def look(stage: Stage, situation: Situation, inside: Container | None, number: int, way: Way) -> Outcome:
    began = time.monotonic()
    run = _local if way == "local" else _by_ssh
    try:
        code, said = run(stage, situation, inside)
    except subprocess.TimeoutExpired:
        code, said = -1, ("it did not end",)
    seconds = time.monotonic() - began
    alone = not any(each.startswith("FAIL") for each in said)
    fine = code in (EXIT_OK, EXIT_INCONCLUSIVE)
    return Outcome(situation.name, number, way, fine, True, alone, None, seconds, code, said)


def _local(stage: Stage, situation: Situation, inside: Container | None) -> tuple[int, tuple[str, ...]]:
    host = stage.lab[situation.node]
    text = f"{situation.shell}\n{DOCTOR} {EXAM}"
    if inside is not None:
        within = f"nsenter -t {inside.pid_on_host} -m -u -i -n -p -- sh -c {shlex.quote(text)}"
        text = f"exec {within}"
    done = host.ask(text, timeout=2 * PATIENCE)
    told = [" ".join(line.split()) for line in map(" ".join, TOLD.findall(done.stdout))]
    if done.returncode and not told:
        told = [f"{done.stdout}{done.stderr}".strip()[-500:]]
    return done.returncode, tuple(told)


def _by_ssh(stage: Stage, situation: Situation, inside: Container | None) -> tuple[int, tuple[str, ...]]:
    words = ["check", situation.node, "--exam", "node", "--json", "-"]
    words += ["--enter", f"docker exec -i {inside.name}"] if inside is not None else []
    done = stage.lab.doctor(*words, timeout=2 * PATIENCE)
    try:
        report = json.loads(done.stdout)
    except ValueError:
        return done.returncode, (f"{done.stdout}{done.stderr}".strip()[-500:],)
    told = [
        f"{found['status'].upper()} {found['check']} {found['summary']}"
        for found in report["findings"]
        if found["status"] != "unknown" or done.returncode
    ]
    return done.returncode, tuple(told)
