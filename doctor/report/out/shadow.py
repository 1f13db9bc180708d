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
    hosts: str


class ShadowLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the file of `--shadow`: one run."""

    shadow: Literal[1] = 1
    time: str
    host: str
    version: str = __version__
    command: str
    exam: str
    exam_version: int | None
    hosts: str
    verdict: Verdict
    exit_code: int
    headline: str
    failed: tuple[ShadowFault, ...]


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
