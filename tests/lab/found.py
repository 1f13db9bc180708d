"""Which checks found the fault that they are for: at the end of all tests, each check must have found one.

`make test-all` names a folder in the environment. Every run of `doctor` records there which check blamed
whom: a check that failed in no run is not proved by its tests. A check that can fail must have failed in a
run that ended with exit code 1; for one that only warns, a warning suffices.
"""

import json
import os
import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

from doctor.judge.registry import find_checks
from doctor.model import Severity

from .needs import missing

FOLDER = "FAULTS_SEEN"
TOLD = re.compile(r"^(FAIL|WARN)  (\S+)  ((?:.*\n){1,5}?) {6}(?:where|found|means|do|seen) ", re.MULTILINE)
FREEZER = Path("/sys/fs/cgroup/freezer/cgroup.procs")
NOT_IN_THE_LAB = {
    **dict.fromkeys(("smoke-network-unused", "smoke-gpudirect-off"), "it takes NCCL, and NCCL takes GPUs"),
    **({} if FREEZER.exists() else {"smoke-contention": "it takes a freezer of cgroups, version 1"}),
}
"""Checks whose fault no test run can cause reliably, with the reason: their tests judge recordings."""


def keep(args: Sequence[str], code: int, cwd: Path | str, text: str) -> None:
    """Record which check of a run of `doctor ARGS` blamed whom: from its report, or else from its output."""
    folder = os.environ.get(FOLDER)
    if folder and code in (0, 1):
        test = os.environ.get("PYTEST_CURRENT_TEST", "").partition(" ")[0]
        with (Path(folder) / str(os.getpid())).open("a") as file:
            for status, check, culprit in {*_blamed(args, Path(cwd), text)}:
                if status == "warn" or code == 1:
                    file.write(f"{status}\t{check}\t{culprit}\t{test}\n")


def _blamed(args: Sequence[str], cwd: Path, text: str) -> Iterable[tuple[str, str, str]]:
    """Status, check and culprit."""
    reports = [value for name, value in pairwise(args) if name == "--json"]
    if not reports:
        told = TOLD.findall(text)
        return [(status.lower(), headline.split()[-1], culprit) for status, culprit, headline in told]
    try:
        findings = json.loads((cwd / reports[0]).read_bytes()).get("findings", ())
    except (OSError, ValueError):
        return []
    faults = [found for found in findings if found["status"] in ("fail", "warn")]
    return [
        (found["status"], found["check"], found["nodeset"] or found["subject"] or "the run")
        for found in faults
    ]


def unseen(folder: Path) -> list[str]:
    """The checks that are missing from the record, in words."""
    lines = "".join(file.read_text() for file in folder.iterdir()).splitlines()
    seen = {tuple(line.split("\t")[:2]) for line in lines}
    return [
        f"{check.id}: no run found its fault"
        for check in find_checks(()).checks
        if check.id not in NOT_IN_THE_LAB
        and ("fail", check.id) not in seen
        and (check.severity is Severity.FAIL or ("warn", check.id) not in seen)
    ]


def told(folder: Path) -> int:
    """Print the result; the exit code."""
    if reason := missing():
        print(f"Whether every check finds its fault is not known: {reason}")
        return 0
    wrong = unseen(folder)
    print(
        "\n".join(wrong)
        or f"The fault of every check was found, but for {len(NOT_IN_THE_LAB)} with a reason."
    )
    return 1 if wrong else 0
