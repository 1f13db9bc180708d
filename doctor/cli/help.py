"""The layout of --help: options in groups, as plain text of at most 80 columns. -h shows the usual ones. The
manual page and the shell completion are made from the same entries.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from typer.core import TyperCommand, TyperGroup

from doctor.cli.typed_value import OwnValues
from doctor.text.grouped import grouped
from doctor.text.hostprogram import sections
from doctor.text.speech import sign, t
from doctor.text.wrap import cells, padded, wrap

ARGUMENTS, OTHERS = "Arguments", "Options"
BRIEF = "doctor.brief"
"""Whether -h was typed, in the context: typer has one option for -h and --help, and does not say which."""
USUAL = sections(__file__, "help.txt")["usual"]
"""The options that most people need, of the commands that have many."""
WIDEST = 24
"""The most columns for an option with its metavar."""
LONGEST = 30
"""A longer one has a line of its own."""


@dataclass(frozen=True, slots=True)
class HelpEntry:
    """An option or an argument, as it is shown."""

    names: tuple[str, ...]
    """As typed: -F, --hostfile; for an argument its name."""
    metavar: str
    help: str
    panel: str
    is_option: bool

    @property
    def usage(self) -> str:
        return f"{', '.join(self.names)} {self.metavar if self.is_option else ''}".rstrip()


def entries(command: Any, context: Any) -> list[HelpEntry]:
    """The entries of a command, in the order of their groups. Without a group, arguments come first and
    options last.
    """
    shown = (param for param in command.get_params(context) if not getattr(param, "hidden", False))
    found = [_entry(param, context) for param in shown]
    panels = [ARGUMENTS, *dict.fromkeys(each.panel for each in found if each.panel != OTHERS), OTHERS]
    return sorted(found, key=lambda each: panels.index(each.panel))


def _entry(param: Any, context: Any) -> HelpEntry:
    is_option = param.param_type_name == "option"
    metavar = param.metavar or ""
    if is_option and not metavar and not getattr(param, "is_flag", False):
        metavar = param.get_help_record(context)[0].rpartition(" ")[2]
    text = getattr(param, "help", None) or ""
    default = param.default if is_option else None
    if default not in (None, False, (), []) and "efault" not in text:
        text += f" Default: {default:g}." if isinstance(default, float) else f" Default: {default}."
    names = tuple(sorted(param.opts, key=len)) if is_option else (metavar or str(param.name).upper(),)
    panel = getattr(param, "rich_help_panel", None) or (OTHERS if is_option else ARGUMENTS)
    return HelpEntry(names, metavar, text, panel, is_option)


def below(context: Any) -> Iterator[Any]:
    """The contexts of all subcommands; each comes before its own subcommands."""
    for name, command in getattr(context.command, "commands", {}).items():
        if not command.hidden:
            inner = type(context)(command, info_name=name, parent=context)
            yield inner
            yield from below(inner)


class _SpokenHelp:
    """The parts of a help page that typer writes itself, in the language that is spoken."""

    help: str | None

    def format_usage(self, ctx: Any, formatter: Any) -> None:
        pieces = self.collect_usage_pieces(ctx)  # type: ignore[attr-defined]
        formatter.write_usage(ctx.command_path, " ".join(pieces), prefix=t("Usage: "))

    def format_help_text(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        formatter.write("\n")
        for line in wrap(t(self.help or ""), formatter.width - 2):
            formatter.write(f"  {line}\n")


class CliCommand(OwnValues, _SpokenHelp, TyperCommand):
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.meta[BRIEF] = "-h" in args and "--help" not in args
        found: list[str] = super().parse_args(ctx, args)
        return found

    def format_options(self, ctx: Any, formatter: Any) -> None:
        _write_entries(self, ctx, formatter, _usual(ctx))

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        _write_examples(self.epilog, formatter)
        if _usual(ctx):
            formatter.write(f"\n{t(f'All options: {ctx.command_path} --help')}\n")


def _usual(context: Any) -> str:
    """The options to show; all, if it is empty."""
    return USUAL.get(context.command_path.partition(" ")[2], "") if context.meta.get(BRIEF) else ""


class CliCommands(OwnValues, _SpokenHelp, TyperGroup):
    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        shown = [each for each in self.commands.values() if not each.hidden]
        _write_title("Commands", formatter)
        _write_rows([(str(each.name), t(each.help or "")) for each in shown], formatter)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        self.format_commands(ctx, formatter)
        _write_entries(self, ctx, formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        _write_examples(self.epilog, formatter)


def _write_title(title: str, formatter: Any) -> None:
    formatter.write_paragraph()
    formatter.write(f"{t(title)}{sign(': ').rstrip()}\n")


def _write_entries(command: Any, context: Any, formatter: Any, usual: str = "") -> None:
    """All options, or the usual ones and the arguments."""
    found = entries(command, context)
    if usual:
        found = [each for each in found if not each.is_option or each.names[-1] in usual.split()]
    wide = min(max(len(each.usage) for each in found), WIDEST)
    panels = grouped((each.panel, (f"{each.usage:<{wide}}", t(each.help))) for each in found)
    for panel, rows in panels.items():
        _write_title(panel, formatter)
        _write_rows(rows, formatter)


def _write_rows(rows: list[tuple[str, str]], formatter: Any) -> None:
    """Two columns. Chinese is wrapped by cells, which typer cannot do."""
    first = max(min(cells(usage), LONGEST) for usage, _ in rows)
    for usage, said in rows:
        lines = wrap(said, formatter.width - first - 4)
        if cells(usage) > first:
            formatter.write(f"  {usage}\n")
            usage = ""
        for number, line in enumerate(lines):
            formatter.write(f"  {padded('' if number else usage, first)}  {line}".rstrip() + "\n")


def _spoken(example: str) -> str:
    """An example whose explanation is translated."""
    command, gap, what = example.rpartition("  ")
    return f"{command}{gap}{t(what)}"


def _write_examples(epilog: str | None, formatter: Any) -> None:
    if epilog:
        _write_title("Examples", formatter)
        formatter.write("".join(f"  {_spoken(line)}\n" for line in epilog.splitlines()))
