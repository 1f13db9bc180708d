"""Options that are not on the command line of a launcher: directives of a batch script, or its configuration.

They come before the options of its command line, which override them.
"""

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from doctor.errors import InputErrors
from doctor.job.launch.launcher import Launcher
from doctor.job.launch.launchers import COMMANDS, LAUNCHERS, MODULES
from doctor.job.launch.options import NOT_KNOWN, read_options
from doctor.job.launch.wrappers import MOST_WORDS, program_name
from doctor.text.yamlfile import parse_yaml, plain

Read = Callable[[str], str | None]
"""The text of a file, None if it is not here."""


@dataclass(frozen=True, slots=True)
class Directives:
    """What the comments at the head of a script give to a scheduler: options of its launcher, and the
    variables that it will set. `apart`: it starts the script on several hosts, each time as a job of its own.
    """

    options: Mapping[Launcher, tuple[str, ...]]
    variables: Mapping[str, str]
    ranks: str = ""
    apart: bool = False

    def for_others(self, launcher: Launcher, words: Sequence[str]) -> tuple[str, ...]:
        """The options for another launcher: by default it starts as many ranks as the scheduler would."""
        given = read_options(words, launcher.options).values
        takes = launcher.outer and launcher not in self.options and not {"ranks", "each"} & given.keys()
        return (f"{launcher.options.spelled('ranks')}={self.ranks}",) if takes and self.ranks else ()


def read_directives(text: str) -> Directives:
    options: dict[Launcher, tuple[str, ...]] = {}
    variables: dict[str, str] = {}
    ranks, apart = "", False
    for launcher in LAUNCHERS:
        if not launcher.directive:
            continue
        given: dict[str, str] = {}
        for words in _directives(text, launcher.directive):
            given.update(read_options(words, launcher.options).values)
        said = {name: value for name, value in given.items() if launcher.sets_for_job.keys() & {name}}
        options[launcher] = tuple(f"{launcher.options.spelled(name)}={said[name]}" for name in said)
        apart |= "tasks" in given and given.get("nnodes", "1") == "1"
        known = launcher.derived(given)
        ranks = known.get("ranks", "") if known.get("ranks", "").isdecimal() else ranks
        for name, names in launcher.sets_for_job.items():
            if known.get(name, "").isdecimal():
                variables.update(dict.fromkeys(names, known[name]))
    return Directives(options, variables, ranks, apart)


def _directives(text: str, directive: str) -> Iterator[list[str]]:
    """The words of each directive; the first command ends them."""
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            return
        if line.startswith(f"{directive} "):
            try:
                yield shlex.split(line[len(directive) :], comments=True)
            except ValueError:
                continue


def completed(words: tuple[str, ...], directives: Directives, read: Read) -> tuple[tuple[str, ...], str]:
    """The command with the options given elsewhere, and its configuration file if that could not be read."""
    missing = ""
    at = 0
    while at < min(len(words), 2 * MOST_WORDS):
        launcher = COMMANDS.get(program_name(words[at])) or MODULES.get(words[at])
        at += 1
        if launcher is None:
            continue
        at += launcher.subcommand != "" and words[at : at + 1] == (launcher.subcommand,)
        own = directives.options.get(launcher)
        more = directives.for_others(launcher, words[at:]) if own is None else own
        file = _configured_in(words[at:], launcher) if launcher.configured else ""
        if file:
            text = None if "$" in file else read(file)
            config = configuration(text, file, launcher) if text is not None else None
            missing = missing if config is not None else file
            more = (*more, *(config if config is not None else (f"--{launcher.options.file}", NOT_KNOWN)))
        words = (*words[:at], *more, *words[at:])
        if not launcher.outer:
            break
    return words, missing


def _configured_in(words: Sequence[str], launcher: Launcher) -> str:
    """The configuration file that a command line names."""
    own = words[: len(words) - len(read_options(words, launcher.options).rest)]
    for at, word in enumerate(own):
        name, equals, value = word.partition("=")
        if name.lstrip("-").replace("-", "_") == launcher.options.file:
            return value if equals else "".join(own[at + 1 : at + 2])
    return ""


def configuration(text: str, file: str, launcher: Launcher) -> tuple[str, ...] | None:
    """The options in a configuration file of this launcher; None if the file is not one."""
    try:
        tree = plain(parse_yaml(text, file).root)
    except InputErrors:
        return None
    if launcher.configured is None or not isinstance(tree, dict):
        return None
    found: Sequence[tuple[str, object]] | None = launcher.configured(tree)
    return None if found is None else tuple(f"--{name}={value}" for name, value in found)
