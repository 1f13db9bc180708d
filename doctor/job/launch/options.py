"""The words of a command line -> the options of its launcher.

Only options that concern the ranks have a name; for the others it is enough to know whether the next word
belongs to them.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from doctor.job.launch.launcher import NOT_SHOWN, OptionNames

PYTHON = "(python|pypy)[0-9.]*"
OF_AN_EDITOR = re.compile(r"^-*[‐-―−﹣－][-‐-―−﹣－]*(?=[A-Za-z])")
"""Dashes that an editor puts in the place of `-`. The option is read as it is meant, and told."""
NOT_GIVEN = "(not given)"
_ALIKE = 0.85
NOT_KNOWN = "$…"
"""Stands for words of a script that are unknown."""


@dataclass(frozen=True, slots=True)
class GivenOptions:
    """The options before the program, and where the program begins. `sets` are variables for every rank.

    `shown` are the words that concern the ranks. Others may contain a secret; if they were unknown, a mark
    shows that they were there. `partly`: unknown words may contain more options; `strange`: unknown options,
    and those that are meant, which are read as such.
    """

    values: Mapping[str, str]
    sets: Mapping[str, str]
    rest: tuple[str, ...]
    shown: tuple[str, ...]
    partly: bool = False
    strange: tuple[tuple[str, str], ...] = ()


def read_options(words: Sequence[str], known: OptionNames) -> GivenOptions:
    """Parse the options: `--x=y` and `--x y`, with `-` and `_` alike."""
    values: dict[str, str] = {}
    sets: dict[str, str] = {}
    shown: list[str] = []
    strange: dict[str, str] = {}
    own = [full for full, meant in known.values.items() if meant]
    position, partly = 0, False
    while position < len(words):
        word = OF_AN_EDITOR.sub("--", words[position], 1)
        if word == NOT_KNOWN or re.match(r"--?\w[\w-]*[= ][^\s(`]+ +--?\w", word):  # several, in quotes
            partly, position = True, position + 1
            shown.append(NOT_KNOWN)
            continue
        if word == "--":
            position += 1
            shown.append(word)
            break
        if not word.startswith("-") or word == "-":
            break
        position += 1
        begin, says = position, False
        option, equals, value = word.partition("=")
        name = option.lstrip("-").replace("-", "_")
        full = known.known(name)
        if full is None and known.glued and not option.startswith("--") and known.known(name[:1]):
            full, equals, value = name[:1], "=", word[2:]
        if name in known.flags and not equals:
            values[name] = "true"
            says = True
        elif name in known.pairs:
            position += 2
            if len(words) >= position and name in known.sets:
                sets[words[position - 2]] = words[position - 1]
        elif full is not None:
            if not equals:
                value = words[position] if position < len(words) else ""
                position += 1
            if full in known.sets:
                sets.update(_settings(value))
            elif full == known.file:
                partly |= value == NOT_KNOWN
            elif known.values[full]:
                values[known.values[full]] = value
                says = known.values[full] not in NOT_SHOWN
        else:
            if not equals and _is_value(words, position):
                partly |= is_open(value := words[position])
                position += 1
            strange |= {name: value} if name not in known.flags else {}
            says = known.abbreviated and bool(get_close_matches(name, own, 1, _ALIKE))
        if says:
            shown += (word, *words[begin:position])
        elif any(map(is_open, words[begin:position])):
            shown += (option, *(NOT_KNOWN for _ in words[begin:position]))
    own = [full for full in own if known.values[full] not in values]
    meant = {name: "".join(get_close_matches(name, own, 1, _ALIKE)) for name in strange}
    if known.abbreviated:
        values |= {known.values[full]: strange[name] for name, full in meant.items() if full}
    return GivenOptions(values, sets, tuple(words[position:]), tuple(shown), partly, tuple(meant.items()))


def is_open(word: str) -> bool:
    """Whether a word begins with something unknown, so that it may be several words."""
    return word.startswith(("$", "`"))


def _settings(text: str) -> dict[str, str]:
    """The variables in `NAME=value`, or in several with commas between them."""
    parts = (part.partition("=") for part in text.split(","))
    return {name: value for name, equals, value in parts if name and equals}


def _is_value(words: Sequence[str], position: int) -> bool:
    """Whether the word after an unknown option belongs to it; another option, a script or Python does not."""
    if position + 1 >= len(words) or words[position].startswith("-"):
        return False
    return ".py" not in words[position] and re.fullmatch(PYTHON, words[position].rpartition("/")[2]) is None
