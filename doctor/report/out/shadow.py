"""`--shadow`: a run that ends with 0 whatever it finds, and keeps how it would have ended."""

import platform
from typing import Literal

import msgspec

from doctor import __version__
from doctor.errors import EXIT_FAULT, EXIT_INCONCLUSIVE, EXIT_OK
from doctor.judge.verdict import Report
from doctor.model import Verdict
from doctor.report.page.headline import last_line
from doctor.text.nodeset import fold


class ShadowFault(msgspec.Struct, frozen=True):
    """A check that decided the verdict."""

    check: str
    """Its id."""
    hosts: str
    """The culprits, folded: `node[1-4]`; empty if no host is guilty."""


class ShadowLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the file of `--shadow`: one run."""

    shadow: Literal[1] = 1
    """The version of these fields."""
    time: str
    """When the run began, in UTC: `2026-11-20T09:00:00Z`."""
    host: str
    """The machine on which doctor ran."""
    version: str = __version__
    """The version of doctor."""
    command: str
    """`check`, `preflight` or `smoke`."""
    exam: str
    """The exam."""
    exam_version: int | None
    """The version of its closed list of checks; null if its list is open."""
    hosts: str
    """The hosts that were to be examined, folded."""
    verdict: Verdict
    """The verdict of the report."""
    exit_code: int
    """The exit code without `--shadow`."""
    headline: str
    """The last line of the report."""
    failed: tuple[ShadowFault, ...]
    """The checks that decided the verdict."""


def shadow_line(report: Report) -> bytes:
    run = report.run
    line = ShadowLine(
        time=run.started,
        host=platform.node(),
        command=run.command,
        exam=run.exam,
        exam_version=run.exam_version,
        hosts=fold([host.name for host in report.hosts]),
        verdict=report.verdict,
        exit_code=report.exit_code,
        headline=last_line(report),
        failed=tuple(ShadowFault(found.check, fold(found.hosts)) for found in report.faults),
    )
    return msgspec.json.encode(line) + b"\n"


def shadowed(code: int) -> int:
    """The exit code of a run in the shadow: what is found decides nothing."""
    return EXIT_OK if code in (EXIT_FAULT, EXIT_INCONCLUSIVE) else code
