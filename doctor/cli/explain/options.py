"""The commands `doctor explain` and `doctor logs`, with their options."""

import os
import stat
from dataclasses import replace
from functools import partial

from doctor.cli import ranktable
from doctor.cli.examine import run_here, to_its_end
from doctor.cli.options import takes
from doctor.errors import UsageError
from doctor.exam.request import Request
from doctor.logs.options import ExplainWishes, FetchWishes
from doctor.text.option import refuse_conflicts

SHOWN = (
    *("--json", "--html", "--junit", "--markdown", "--prometheus"),
    *("--quiet", "--verbose", "--color", "--no-color"),
)
WAY = (
    *(*ranktable.SSH, "--transport", "--allocate", "--fanout"),
    *("--connect-timeout", "--timeout", "--deadline"),
)


@takes("--rank-table", "--inventory", *WAY, "--checks", *SHOWN)
def explain(wishes: ExplainWishes, request: Request) -> int:
    from doctor.logs.inputs import given, refuse_inputs

    found = given(wishes.what, piped=_is_piped())
    if wishes.check is not None and not wishes.check.strip():
        raise UsageError("--check names no hosts.", "Such as --check 'node[1-4]'.")
    outputs = request.outputs
    pasted = found.text if "\n" in found.text.strip() else ""
    if found.paths or pasted:
        from doctor.logs.explain import explain_logs, refuse_outputs

        refuse_outputs(request, wishes.logs, found.paths)
        refuse_inputs(found.paths)
        check = None
        if wishes.check is not None:
            from doctor.cli.defaults import with_defaults

            there = replace(request.who, hosts=(wishes.check,))
            check = with_defaults(replace(request, who=there), in_report=False)
        run = partial(explain_logs, found.paths, request, wishes.logs, pasted=pasted, check=check)
        return to_its_end(run)
    of_logs = [format.option for format, _ in outputs.files()]
    asked = (("--check", wishes.check), ("--recording", wishes.logs.recording))
    of_logs += [name for name, value in asked if value is not None]
    if of_logs:
        raise UsageError(
            f"{of_logs[0]} goes with a log, and none is named.", "Name its file, or - for stdin."
        )
    from doctor.cli.explain.page import TextPage
    from doctor.cli.explain.words import explain_words
    from doctor.logs.symptoms.match import matcher_of

    checks = request.what.checks
    load = partial(matcher_of, wishes.logs.symptoms, checks)
    return explain_words(found.text, load, TextPage(checks, outputs.colours, verbose=outputs.verbose))


@takes(
    *ranktable.BY_JOB,
    "--rank-table",
    "--exclude",
    *WAY,
    "--python",
    "--launch",
    "--checks",
    "--in-job",
    *SHOWN,
)
def logs(wishes: FetchWishes, request: Request) -> int:
    from doctor.cli.defaults import with_defaults
    from doctor.logs.explain import refuse_outputs
    from doctor.logs.fetch.run import fetch_and_explain, own_fetch

    refuse_conflicts(request, wishes)
    refuse_outputs(request, wishes.logs, ())
    run = partial(fetch_and_explain, wishes=wishes)
    return run_here(with_defaults(request, in_report=False), run, partial(own_fetch, wishes=wishes))


def _is_piped() -> bool:
    """Whether stdin has input: it is a pipe, a socket or a file, not a terminal or /dev/null."""
    try:
        mode = os.fstat(0).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)
