"""`doctor baseline FILE…`: recordings of good runs -> one file to compare others with; touches no host."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from doctor.cli.options import takes
from doctor.errors import EXIT_INCONCLUSIVE, EXIT_OK, UsageError
from doctor.exam.request import Request
from doctor.text.option import any_option

if TYPE_CHECKING:
    from doctor.judge.baseline import GoodRun


LINKS = "accept-slow-link"
"""A first acceptance test has nothing yet that judges its links: that keeps nobody out of a baseline."""


@dataclass(frozen=True, slots=True)
class BaselineWishes:
    files: tuple[Path, ...] = any_option("FILE", default=())
    output: Path | None = any_option("--output FILE")


@takes("--checks", "--quiet")
def baseline(request: Request, wishes: BaselineWishes) -> int:
    from doctor.baseline import WRITTEN_BY, as_yaml
    from doctor.judge.baseline import baseline_of
    from doctor.report.out.formats import STDOUT
    from doctor.report.out.outputs import Attempts, refuse_unwritable
    from doctor.text.announce import announce

    if not wishes.files:
        raise UsageError("No recording is named.", WRITTEN_BY)
    output = wishes.output or STDOUT
    others = {} if output == STDOUT else {"--output": output}
    refuse_unwritable(request.outputs, others, [("FILE", path) for path in wishes.files])
    runs = [_good_run(path, request) for path in wishes.files]
    if not any(run.hosts for run in runs):
        announce("no baseline was written: none of the hosts is healthy.")
        return EXIT_INCONCLUSIVE
    attempt = Attempts()
    attempt.write(output, as_yaml(baseline_of(runs)).encode(), for_all=True)
    attempt.settle()
    return EXIT_OK


def _good_run(path: Path, request: Request) -> GoodRun:
    from doctor.exam.examination import judge_again
    from doctor.exam.way import as_recorded
    from doctor.judge.baseline import GoodRun
    from doctor.model import Status
    from doctor.recording import FILE
    from doctor.savedrun import read_saved
    from doctor.text.announce import announce
    from doctor.text.nodeset import fold
    from doctor.transport.way import EXAMINES

    raw = read_saved(path)
    recorded = replace(FILE.load(path, raw), baseline=None)
    if recorded.command not in EXAMINES:
        raise UsageError(
            f"{path}: is a recording of doctor {recorded.command}.",
            f"A baseline is made of recordings of {', '.join(EXAMINES)}, which say who is healthy.",
        )
    own = as_recorded(replace(request, command=recorded.command), recorded)
    reading, report = judge_again(own, recorded)
    of_links = [each for each in report.findings if each.check == LINKS]
    if any(each.status is Status.UNKNOWN for each in of_links):
        rest = replace(own, what=replace(own.what, skip=(*own.what.skip, LINKS)))
        reading, report = judge_again(rest, recorded)
    everybody = tuple(host.name for host in recorded.hosts)
    slow = (each.hosts or everybody for each in of_links if each.status is Status.FAIL)
    good = frozenset(report.healthy_hosts).difference(*slow)
    left_out = [host.name for host in recorded.hosts if host.name not in good]
    if left_out and not request.outputs.quiet:
        announce(f"{path}: {fold(left_out)} left out: not healthy in that run.")
    return GoodRun(f"sha256:{hashlib.sha256(raw).hexdigest()[:16]}", reading, good)
