"""The command line: its commands with their options. Each command imports the heavy modules that it needs."""

import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from textwrap import indent
from typing import Annotated, Any

import typer

from doctor import __version__
from doctor.cli import ranktable
from doctor.cli.baseline import baseline
from doctor.cli.diff import diff as compare_runs
from doctor.cli.examine import accept, ask_facts, ask_hang, ask_slow, check_hosts, examine
from doctor.cli.explain import options as explain_command
from doctor.cli.help import below
from doctor.cli.history import history
from doctor.cli.mistakes import mistake
from doctor.cli.options import group, takes
from doctor.cli.run import run_command
from doctor.cli.whichlanguage import LANGUAGE_HELP, chosen
from doctor.errors import EXIT_USAGE, DoctorError, UsageError, suggest
from doctor.exam.request import ExamFlags, Request
from doctor.report.out.formats import FORMATS, Outputs
from doctor.text.hostprogram import table
from doctor.text.language import Language
from doctor.text.option import any_option
from doctor.text.speech import speak, t
from doctor.text.terminal import prepare, put, tell

_PAGES = {name: lines for name, *lines in table(__file__, "commands.txt")}
"""What each command is for, and its examples."""


def _page(name: str) -> tuple[str, str]:
    said, *examples = _PAGES[name]
    return said, "\n".join(examples)


app = group(*_page("doctor"))


def _command(name: str) -> Callable[..., Any]:
    """Makes a function a command, with its page."""
    said, examples = _page(name)
    return app.command(name, help=said, epilog=examples or None)


def run(arguments: Sequence[str]) -> int:
    """Runs the command line and returns the exit code. Only here do our errors become messages."""
    prepare()
    try:
        ours, command = _parted(arguments)
        speak(chosen(ours, os.environ, sys.stdout.encoding))
        code = _commands()(_spread(ours), prog_name="doctor", standalone_mode=False, obj=command)
    except DoctorError as error:
        return _refused(error)
    except typer.Exit as leave:
        return leave.exit_code
    except Exception as error:
        if not hasattr(error, "format_message"):  # typer's own errors have it
            raise
        if type(error).__name__ == "NoArgsIsHelpError":  # a group without a command shows its help
            tell(f"{error.format_message()}\n")
            return EXIT_USAGE
        _forget_go(arguments)
        return _refused(mistake(error, arguments))
    return int(code or 0)


@cache
def _commands() -> Callable[..., Any]:
    """All commands with their options; building them takes longer than many runs."""
    return typer.main.get_command(app)


def _refused(error: DoctorError) -> int:
    from doctor.text.redact import redact

    tell(f"doctor: {redact(t(error.message))}\n")
    if error.hint:
        hint = t(re.sub("^did you", "Did you", redact(error.hint)))  # it is a separate sentence here
        tell(indent(hint, " " * 8) + "\n")
    return error.exit_code


def _parted(arguments: Sequence[str]) -> tuple[Sequence[str], tuple[str, ...] | None]:
    """Our own arguments, and the command after `--` of `doctor run`, which is nobody's to read."""
    if arguments[:1] != ["run"] or "--" not in arguments:
        return arguments, None
    at = arguments.index("--")
    return arguments[:at], tuple(arguments[at + 1 :])


def _spread(arguments: Sequence[str]) -> list[str]:
    """The arguments with `--launch` before each of its files, since the shell turns `--launch env*.log` into
    `--launch env0.log env1.log`. In `explain exit code -9` the last word is not taken for an option.
    """
    spread: list[str] = []
    for argument in arguments:
        if arguments[0] == "explain" and re.fullmatch(r"-[0-9]{1,9}", argument):
            argument = f" {argument}"
        follows = len(spread) > 1 and spread[-2] == "--launch" and not argument.startswith("-")
        spread += ["--launch", argument] if follows and Path(argument).is_file() else [argument]
    return spread


def _forget_go(arguments: Sequence[str]) -> None:
    """Empties the list of healthy hosts that a command line names, even if the rest is not understood."""
    from doctor.report.out.outputs import empty_lists

    for option in (form.option for form in FORMATS if form.is_go):
        for at, word in enumerate(arguments):
            name, _, file = word.partition("=")
            rest = [*arguments[:at], *arguments[at + 1 :]]
            if name == option and not file and len(rest) > at:
                file = rest.pop(at)
            is_file = file and not file.startswith("-")
            if name == option and is_file and not any(other.endswith(file) for other in rest):
                empty_lists(Outputs(healthy_hosts=Path(file)))


def _version(wanted: bool) -> None:
    if wanted:
        put(f"cluster-doctor {__version__}\n", sys.stdout)
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("-V", "--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    lang: Annotated[Language | None, typer.Option("--lang", metavar="en|zh", help=LANGUAGE_HELP)] = None,
) -> None:
    del version, lang  # both have had their effect


DEMO_OPTIONS = (
    *(form.option for form in FORMATS if not form.is_go and form.option != "--faulty-hosts"),
    "--verbose",
    "--color",
    "--no-color",
)
"""The options of a demo: those that show a report, without those from whose output jobs are started."""
TRAINING = ("--steps", "--tp", "--smoke-timeout", "--inject")
FACTS = (
    *("--transport", "--allocate", "--fanout", "--connect-timeout", "--timeout", "--deadline", "--python"),
    *("--in-job", "--save", "--replay", "--json", "--color", "--no-color"),
    *("--html", "--markdown", "--quiet", "--verbose"),
)
NOT_AROUND = (
    *("--in-job", "--job", "--replay", "--save", "--print", "--healthy-hosts", "--faulty-hosts"),
    *("--html", "--markdown", "--per-host"),
)
"""The options of a pre-flight that say nothing about a command, or are not for it."""
HANG = (
    *(*ranktable.HOSTS, *ranktable.PODS, "--rank-table", "--exclude", *ranktable.SSH),
    *(*FACTS, "--junit", "--prometheus"),
)

_command("check")(takes(without=(*TRAINING, "--no-smoke"))(check_hosts))
_command("smoke")(takes(without=("--no-smoke",))(examine))
_command("preflight")(takes()(examine))
_command("accept")(takes(without=("--no-smoke", "--inject", "--in-job"))(accept))

_command("run")(takes(without=NOT_AROUND)(run_command))
_command("hang")(takes(*HANG)(ask_hang))
_command("slow")(takes(*HANG)(ask_slow))
_command("facts")(takes(*ranktable.BY_JOB, "--rank-table", "--exclude", *ranktable.SSH, *FACTS)(ask_facts))
_command("diff")(compare_runs)
_command("history")(history)
_command("baseline")(baseline)
app.add_typer(ranktable.app, name="ranktable", help="Make or check a rank table.")


@dataclass(frozen=True, slots=True)
class DemoWishes:
    name: str | None = any_option("NAME")


@_command("demo")
@takes(*DEMO_OPTIONS)
def _demo(request: Request, wishes: DemoWishes) -> int:
    from doctor.cli.demo import demo

    return demo(wishes.name, request)


@dataclass(frozen=True, slots=True)
class ListWishes:
    what: str | None = any_option("checks|remedies|symptoms|schema")
    symptoms: tuple[Path, ...] = any_option("--symptoms DIR", default=(), panel=ExamFlags.PANEL)


@_command("list")
@takes("--checks", "--color", "--no-color")
def _list(request: Request, wishes: ListWishes) -> int:
    from doctor.cli.catalogue import print_list, print_remedies, print_schema, print_symptoms

    what, colours = wishes.what, request.outputs.colours
    if what == "checks" or (what is None and not wishes.symptoms):
        return print_list(request.what.checks, colours)
    if what == "schema":
        return print_schema()
    if what == "remedies":
        return print_remedies(colours)
    if what not in (None, "symptoms"):
        raise UsageError(f"There is no list of {what!r}.", "There are checks, remedies, symptoms and schema.")
    return print_symptoms(wishes.symptoms, colours)


_command("explain")(explain_command.explain)
_command("logs")(explain_command.logs)


@dataclass(frozen=True, slots=True)
class HelpWishes:
    words: tuple[str, ...] = any_option("COMMAND", default=())
    man: bool = any_option("--man", default=False)


@_command("help")
@takes()
def _help(context: typer.Context, wishes: HelpWishes) -> int:
    root = context.find_root()
    if wishes.man:
        from doctor.cli.manpage import manual

        put(manual(root, __version__), sys.stdout)
        return 0
    known = {each.command_path.partition(" ")[2]: each for each in below(root)}
    wanted = " ".join(wishes.words)
    if wanted and wanted not in known:
        meant = suggest(wanted, known)
        raise UsageError(f"There is no command {wanted!r}.", meant or f"There are {', '.join(known)}.")
    put(f"{known[wanted].get_help() if wanted else root.get_help()}\n", sys.stdout)
    return 0


@dataclass(frozen=True, slots=True)
class CompletionWishes:
    shell: str | None = any_option("SHELL", values=("bash", "zsh", "fish"))


@_command("completion")
@takes()
def _completion(context: typer.Context, wishes: CompletionWishes) -> int:
    from doctor.cli.completion import SHELLS, script

    shell = wishes.shell or os.path.basename(os.environ.get("SHELL", ""))
    if shell not in SHELLS:
        raise UsageError("For which shell?", "Type: doctor completion followed by bash, zsh or fish")
    put(script(shell, context.find_root()), sys.stdout)
    return 0
