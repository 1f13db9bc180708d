"""`doctor explain` and `doctor logs`, as they are typed."""

from __future__ import annotations

import os
import stat
import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from doctor.cli import ranktable
from doctor.cli.examine import to_its_end
from doctor.cli.options import a_number, a_path, takes
from doctor.errors import UsageError
from doctor.run.request import Request
from doctor.text.language import Language, language
from doctor.text.option import Option

SHOWN = (
    *("--json", "--html", "--junit", "--markdown", "--prometheus"),
    *("--quiet", "--verbose", "--color", "--no-color"),
)
WAY = (*ranktable.SSH, "--transport", "--fanout", "--connect-timeout", "--timeout", "--deadline")
PANEL = "The logs"
LIMIT = Option("--limit MB", "", (), min=0.01, max=1000)


def _path(name: str, metavar: str, help: str) -> Any:
    return typer.Option(name, metavar=metavar, help=help, parser=partial(a_path, Path), rich_help_panel=PANEL)


Symptoms = Annotated[
    list[Path] | None, _path("--symptoms", "DIR", "More symptoms, from a folder of YAML files.")
]
Recording = Annotated[
    Path | None, _path("--recording", "FILE", "A recording of the hosts: their names, ranks and clocks.")
]


@takes("--rank-table", "--inventory", *WAY, "--checks", *SHOWN)
def explain(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="WHAT",
            help="Logs (files, folders, archives, - for stdin); or an id, a code, a message.",
            rich_help_panel=PANEL,
        ),
    ] = None,
    *,
    symptoms: Symptoms = None,
    recording: Recording = None,
    run: Annotated[
        str | None,
        typer.Option(
            "--run",
            metavar="HOSTS",
            help="Make the checks that prove it, on these hosts.",
            rich_help_panel=PANEL,
        ),
    ] = None,
    lang: Annotated[
        Language | None, typer.Option("--lang", help="The language of a page. Default: that of the locale.")
    ] = None,
    request: Request,
) -> int:
    from doctor.logs.given import given, refuse_inputs

    found = given(list(what or ()), piped=_is_piped())
    if run is not None and not run.strip():
        raise UsageError("--run names no hosts.", "Such as --run 'node[1-4]'.")
    outputs = request.outputs
    pasted = found.text if "\n" in found.text.strip() else ""
    if found.paths or pasted:
        from doctor.cli.explainlogs import ExplainWishes, explain_logs, refuse_outputs

        wishes = ExplainWishes(tuple(symptoms or ()), recording, run)
        refuse_outputs(request, wishes, found.paths)
        refuse_inputs(found.paths)
        return to_its_end(partial(explain_logs, found.paths, request, wishes, pasted=pasted))
    of_logs = [format.option for format, _ in outputs.files()]
    of_logs += [name for name, value in (("--run", run), ("--recording", recording)) if value is not None]
    if of_logs:
        raise UsageError(
            f"{of_logs[0]} goes with a log, and none is named.", "Give its file, or - for stdin."
        )
    from doctor.cli.explainwords import explain_words
    from doctor.cli.symptoms import matcher_of

    checks = request.what.checks
    load = partial(matcher_of, tuple(symptoms or ()), checks)
    lang = lang or language(os.environ, sys.stdout.encoding)
    return explain_words(found.text, load, checks, lang, verbose=outputs.verbose, colours=outputs.colours)


@takes(*ranktable.HOSTS, "--rank-table", "--exclude", *WAY, "--python", "--launch", "--checks", *SHOWN)
def logs(
    *,
    path: Annotated[
        list[str] | None,
        typer.Option(
            "--path",
            metavar="GLOB",
            help="Where the logs are on the hosts. Default: the usual places.",
            rich_help_panel=PANEL,
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="WHEN",
            help="Only files written since then: 2h, 3d or a time. Default: 1d; with --path, all.",
            rich_help_panel=PANEL,
        ),
    ] = None,
    limit: Annotated[
        float,
        typer.Option(
            "--limit",
            metavar="MB",
            help="Most megabytes that a host gives; a file gives a quarter of that.",
            parser=partial(a_number, float, LIMIT),
            rich_help_panel=PANEL,
        ),
    ] = 64.0,
    save: Annotated[Path | None, _path("--save", "DIR", "Keep what was fetched in a new folder.")] = None,
    rank_user: Annotated[
        str | None,
        typer.Option(
            "--rank-user",
            metavar="NAME",
            help="In /tmp and other places for all, also the logs of this user.",
            rich_help_panel=PANEL,
        ),
    ] = None,
    symptoms: Symptoms = None,
    recording: Recording = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Make the checks that prove it, on these hosts.", rich_help_panel=PANEL),
    ] = False,
    request: Request,
) -> int:
    from doctor.cli.explainlogs import ExplainWishes
    from doctor.cli.fetchlogs import FetchWishes, fetch_and_explain

    wishes = ExplainWishes(tuple(symptoms or ()), recording, run_there=check)
    fetch = FetchWishes(tuple(path or ()), since, limit, save, rank_user)
    return to_its_end(partial(fetch_and_explain, request, wishes, fetch))


def _is_piped() -> bool:
    """Whether somebody feeds stdin: a pipe or a file, not a terminal or /dev/null."""
    try:
        mode = os.fstat(0).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)
