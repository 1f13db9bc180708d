"""An option of the command line, defined once: as a field of the request that it fills.

The field holds how the option is typed, its help text, which is in option.txt, and what it cannot be combined
with. Standard library only.
"""

import re
from collections.abc import Iterator
from dataclasses import MISSING, dataclass, field, fields
from functools import partial
from keyword import iskeyword
from typing import Any

from doctor.errors import UsageError
from doctor.text.hostprogram import sections

KEY = "option"
IN_JOB, REPLAY, NO_SMOKE = "--in-job", "--replay", "--no-smoke"
LIVE = "live"
"""In place of a file of --launch: the job that runs on the hosts. A file of that name is ./live."""
HELP = sections(__file__, "option.txt")["help"]
"""What --help says, by the usage of each option."""


@dataclass(frozen=True, slots=True)
class Option:
    usage: str
    """The usage in --help: "-F, --hostfile FILE"; without a dash, such as HOSTS, it is an argument."""
    help: str
    not_with: tuple[str, ...]
    """Which of IN_JOB, REPLAY and NO_SMOKE it cannot be combined with."""
    commas: bool = False
    """Whether "a,b" is two values."""
    min: float | None = None
    max: float | None = None
    values: tuple[str, ...] = ()
    """The words that may be typed, if there are only a few."""
    panel: str = ""
    """Its group in --help, if it is not the group of its class."""
    alone: tuple[str, str] = ("", "")
    """Only for these three options: why they cannot be combined with others, and what to do instead."""
    aliases: tuple[str, ...] = ()
    """Older names, still accepted but not shown."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(word.rstrip(",") for word in self.usage.split() if word.startswith("-"))

    @property
    def metavar(self) -> str | None:
        return " ".join(word for word in self.usage.split() if not word.startswith("-")) or None

    @property
    def takes_path(self) -> bool:
        """Whether its value is a file or a folder."""
        return bool(self.names) and re.search(r"\b(FILE|DIR|PATH)\b", self.usage) is not None

    @property
    def name(self) -> str:
        """The long name."""
        return (self.names or (self.usage,))[-1]

    def allows(self, number: float) -> bool:
        """Whether its value may be this number. NaN is within no limits."""
        return (self.min is None or number >= self.min) and (self.max is None or number <= self.max)

    @property
    def parameter(self) -> str:
        """The name as an identifier."""
        return identifier(self.name)


def identifier(name: str) -> str:
    """The name as a Python identifier. An argument and an option of the same name get different ones, as in
    `list symptoms` and `list --symptoms`.
    """
    word = re.sub(r"\W", "_", name.lstrip("-").lower())
    return f"{word}_" if iskeyword(word) or not name.startswith("-") else word


def option(
    usage: str, help: str = "", *, not_with: tuple[str, ...], default: object = None, **more: Any
) -> Any:
    """A field that is an option; `more` as in Option. `help`: if it is not the one of option.txt, because an
    option of another command is typed alike.
    """
    return field(default=default, metadata={KEY: Option(usage, help or HELP[usage], not_with, **more)})


host_option = partial(option, not_with=(IN_JOB, REPLAY))
"""An option about the hosts and how to reach them; inside a job and for a recording both are known."""
live_option = partial(option, not_with=(REPLAY,))
"""An option about what happens on the hosts."""
any_option = partial(option, not_with=())
"""An option that is also useful for judging a recording."""


def options(request: Any) -> Iterator[tuple[Option, Any]]:
    """The options of a request with their values, or of a class with their defaults."""
    for each in fields(request):
        default = each.default if each.default_factory is MISSING else each.default_factory
        value = default if isinstance(request, type) else getattr(request, each.name)
        if KEY in each.metadata:
            yield each.metadata[KEY], value
        elif each.default_factory is not MISSING:  # a group of options
            yield from options(value)


def refuse_conflicts(*groups: Any) -> None:
    """Raises UsageError if the given options cannot be combined."""
    given = [known for group in groups for known, _ in given_in(group)]
    for first in given:
        clashing = [known.name for known in given if first.name in known.not_with]
        if clashing:
            reason, hint = first.alone
            raise UsageError(f"{first.name} cannot be combined with {', '.join(clashing)}: {reason}.", hint)


def given_in(group: Any) -> Iterator[tuple[Option, Any]]:
    """The options that differ from their defaults."""
    defaults = {known.name: default for known, default in options(type(group))}
    yield from ((known, value) for known, value in options(group) if value != defaults[known.name])
