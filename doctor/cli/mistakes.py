"""The message for a command line that is not understood, with what was probably meant."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Any

import typer

from doctor.errors import UsageError, suggest

HOST = re.compile(r"[A-Za-z0-9@][\w.,@\[\]-]*", re.ASCII)


class UnknownWord(typer.BadParameter):
    """A value that is not one of the allowed words."""

    def __init__(self, typed: str, values: tuple[str, ...]) -> None:
        super().__init__(f"there is no {typed[:60]!r}; there are {', '.join(values)}")
        self.hint = suggest(typed, values)


def mistake(error: Any, arguments: Sequence[str]) -> UsageError:
    """The message for an error of typer's own parser."""
    context, message = getattr(error, "ctx", None), str(error.format_message())
    named = f"doctor {arguments[0]}" if arguments and arguments[0].isalpha() else "doctor"
    hint = f"Try '{context.command_path if context else named} -h' for help."
    param = getattr(error, "param", None)
    if param and error.message:
        option = max(param.opts, key=len)
        said = error.message.removeprefix("Value error, ")
        message = f"{option if option.startswith('-') else param.metavar or option}: {said}"
        hint = getattr(error, "hint", "") or hint
    elif context and hasattr(error, "possibilities"):
        message = f"No such option: {error.option_name}"
        hint = _of_option(error.option_name, context) or hint
    elif context and (found := re.match(r"(No such command '(.*)')\.", message, re.DOTALL)):
        message, word = found.groups()
        hint = suggest(word, _visible(context.command)) or _as_host(word, context) or hint
    return UsageError(message if message.endswith(".") else f"{message}.", hint)


def _as_host(word: str, context: Any) -> str:
    if context.parent or not HOST.fullmatch(word):
        return ""
    return f"Hosts go after a command: doctor check {shlex.quote(word)}"


def _of_option(typed: str, context: Any) -> str:
    """What was probably meant: a similar option of this command, or the same option of other commands."""
    own = [name for param in _shown(context.command) for name in param.opts if name.startswith("--")]
    if meant := suggest(typed, own):
        return meant
    root = context.find_root()
    takers = [path for path, command in _commands(root.command, root.info_name) if _takes(command, typed)]
    return (
        f"It is an option of {', '.join(takers)}; {context.command_path} -h lists its own." if takers else ""
    )


def _takes(command: Any, option: str) -> bool:
    return any(option in param.opts for param in _shown(command))


def _shown(command: Any) -> Iterator[Any]:
    yield from (param for param in command.params if not getattr(param, "hidden", False))


def _visible(group: Any) -> list[str]:
    return [name for name, command in group.commands.items() if not command.hidden]


def _commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every subcommand with the words that are typed for it."""
    for name, each in getattr(command, "commands", {}).items():
        yield f"{path} {name}", each
        yield from _commands(each, f"{path} {name}")
