"""Options -> calls -> render -> exit. Heavy modules are imported by the command that needs them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from textwrap import indent
from typing import Annotated

import typer

from doctor import __version__
from doctor.cli import ranktable
from doctor.cli.examine import examine
from doctor.cli.options import group, takes
from doctor.errors import EXIT_USAGE, DoctorError
from doctor.run.request import Request
from doctor.text.terminal import prepare, put, tell

app = group(
    "Examine a training cluster: which host, port or pair is at fault, how it is known, what to type."
)


def run(arguments: Sequence[str]) -> int:
    """Run the command line; our errors become sentences here and nowhere else."""
    prepare()
    try:
        code = app(_spread(arguments), prog_name="doctor", standalone_mode=False)
    except DoctorError as error:
        tell(f"doctor: {error.message}\n")
        if error.hint:
            tell(indent(error.hint, " " * 8) + "\n")
        return error.exit_code
    except typer.Exit as leave:
        return leave.exit_code
    except Exception as error:
        shown = getattr(error, "show", None)  # click's own errors know how to show themselves
        if shown is None:
            raise
        _forget_go(arguments)
        with redirect_stderr(StringIO()) as message:
            shown()
        tell(message.getvalue())
        if getattr(error, "ctx", None) is None:  # then it shows no next step
            command = f"{arguments[0]} " if arguments and arguments[0].isalpha() else ""
            tell(f"Try 'doctor {command}-h' for help.\n")
        return int(getattr(error, "exit_code", EXIT_USAGE))
    return int(code or 0)


def _spread(arguments: Sequence[str]) -> list[str]:
    """The shell turns `--launch env*.log` into `--launch env0.log env1.log`: each is one more file."""
    spread: list[str] = []
    for argument in arguments:
        follows = len(spread) > 1 and spread[-2] == "--launch" and not argument.startswith("-")
        spread += ["--launch", argument] if follows and Path(argument).is_file() else [argument]
    return spread


def _forget_go(arguments: Sequence[str]) -> None:
    """Of a command line that is not understood, this much is clear: where the list of an earlier run is."""
    from doctor.report.formats import FORMATS, Outputs
    from doctor.report.outputs import empty_lists

    for option in (form.option for form in FORMATS if form.is_go):
        for at, word in enumerate(arguments):
            name, _, file = word.partition("=")
            rest = [*arguments[:at], *arguments[at + 1 :]]
            if name == option and not file and len(rest) > at:
                file = rest.pop(at)
            if name == option and file and not any(other.endswith(file) for other in rest):
                empty_lists(Outputs(healthy_hosts=Path(file)))


def _version(wanted: bool) -> None:
    if wanted:
        put(f"cluster-doctor {__version__}\n", sys.stdout)
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    del version


TRAINING = ("--steps", "--tp", "--smoke-timeout", "--inject")

app.command("check", help="Ask every host, judge, report.")(takes(without=(*TRAINING, "--no-smoke"))(examine))
app.command("smoke", help="A short real parallel training that names what is wrong.")(
    takes(without=("--no-smoke",))(examine)
)
app.command("preflight", help="For job scripts: check, then smoke on the hosts that passed.")(
    takes()(examine)
)
app.add_typer(ranktable.app, name="ranktable", help="Make a rank table from the live devices, or check one.")


@app.command("list", help="The checks and exams, and where each comes from.")
@takes("--checks")
def _list(request: Request) -> int:
    from doctor.cli.explain import print_list

    return print_list(request.what.checks)


@app.command("explain", help="The manual page of a check.")
@takes("--checks")
def _explain(
    id: Annotated[str, typer.Argument(metavar="ID", help="The id of a check.")],
    request: Request,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Also the file of the check.")] = False,
) -> int:
    from doctor.cli.explain import print_page

    return print_page(id, request.what.checks, verbose=verbose)
