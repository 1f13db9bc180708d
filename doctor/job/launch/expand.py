"""Words of a script -> the texts that a command would receive, as far as the script itself determines them.

Variables, arithmetic, and the output of `seq`, `expr`, `pwd`, `dirname` and of programs that change text are
evaluated. START stands for the folder in which the script is started, which may have another name on another
machine.
"""

import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase, translate
from itertools import dropwhile, islice

from doctor.job.launch.arithmetic import evaluate
from doctor.job.launch.shell_blocks import LEADING, SimpleCommand, simple_commands
from doctor.job.launch.shell_tokens import ShellError, Word, WordPart, tokens
from doctor.job.launch.text_programs import affordable, printed


@dataclass(frozen=True, slots=True)
class Partly:
    """A text of which some parts are unknown: these stay as written, with GLUE for their spaces."""

    text: str

    @property
    def shown(self) -> str:
        return self.text.replace(GLUE, " ")

    @property
    def words(self) -> list[str]:
        return [word.replace(GLUE, " ") for word in self.text.split()]


class Table(tuple[str, ...]):
    """The values of an associative array, in the order in which it is written."""

    keys: tuple[str, ...]


Value = str | tuple[str, ...] | Partly | None
"""A string, a list or a table, a text that is known in part, or None if unknown."""
Values = Mapping[str, Value]
LONGEST = 4000
MOST_WORDS = 1000
MOST_TURNS = 1024
"""The most turns of one loop; no host has more ranks."""
START = "\ufdd0"
"""A character that no text contains: a word with it is a path below the folder of the script."""
GLUE = "\ufdd1"
"""Another such character: a space that does not separate words."""
DOLLAR = "\ufdd2"
"""Another: a $ in single quotes, for a program that reads it."""
FOLDER = "PWD"
FILE = "<"
"""Before a path: the name of what the file beside the script contains."""
IN_BATCH = {f"SLURM_{name}": Partly(f"${{SLURM_{name}-0}}") for name in ("NODEID", "PROCID", "LOCALID")}
"""The numbers of a task, as a batch script fills them in by itself; nobody writes them so."""
_LISTED = re.compile(
    r"\$\{?([@*])(?::([1-9]))?\}?|\$\{([#!]?)([A-Za-z_]\w{0,199})\[([@*]|[\w$+\-{}\x22 ()%.*]{1,100})\]\}"
)
"""The arguments, and expressions about a list."""
_CHANGED = re.compile(
    r"\$\{(#?)([A-Za-z_]\w{0,199}|[1-9])(?:(##?|%%?)([^}]{1,60})|/([/#%]?)((?:\\.|[^/]){1,60}?)(?:/([^}]*))?"
    r"|(,,|\^\^)|:\s?(-?\d{1,4})(?::(-?\d{1,4}))?)?\}",
    re.DOTALL,
)
"""A variable of which a part is cut off, replaced or taken."""
_INNER = re.compile(r"\$\(([^()]{1,200})\)")
"""A command in an arithmetic text."""
_BRACES = re.compile(
    r"(.{0,200}?)\{(?:(-?\d{1,9})\.\.(-?\d{1,9})(?:\.\.(\d{1,9}))?|([^{}]*,[^{}]*))\}(.{0,200})", re.DOTALL
)


def fields(words: Sequence[Word], values: Values) -> list[str]:
    """The words as texts. An unquoted variable may be several words or none; unknown parts stay as is."""
    found: list[str] = []
    for word in words:
        texts: list[str | None] = [None]
        for part in word.parts:
            pieces = _pieces(part, values, MOST_WORDS + 1 - len(texts))
            if len(texts) > MOST_WORDS or len(texts[-1] or "") > LONGEST:
                break
            if pieces:
                texts[-1] = (texts[-1] or "") + pieces[0]
                texts += pieces[1:]
        found += [text[:LONGEST] for text in texts if text is not None]
        if len(found) > MOST_WORDS:
            break
    return found[:MOST_WORDS]


def one(parts: Sequence[WordPart], values: Values) -> str | Partly:
    """The parts as one text; unknown parts stay as written."""
    text, whole = "", True
    for part in parts:
        value = _joined(part, values)
        whole &= isinstance(value, str)
        raw = value.text if isinstance(value, Partly) else part.raw.replace(" ", GLUE)
        text += value if isinstance(value, str) else raw
    return text if whole and len(text) <= LONGEST else Partly(text[:LONGEST])


def _joined(part: WordPart, values: Values) -> Value:
    """The value of a part where it is one text: a list is joined by spaces."""
    value = part.text if part.kind == "text" else _value(part, values)
    if not isinstance(value, tuple):
        return value
    return Partly(" ".join(value)) if any(map(unknown, value)) else " ".join(value)


def _pieces(part: WordPart, values: Values, most: int) -> list[str]:
    """The texts of a part: at most `most`, and no more work than for these."""
    if part.kind == "text":
        return [part.text]
    value = _value(part, values)
    if isinstance(value, Partly):
        return [value.shown] if part.quoted else value.words[:most]
    if isinstance(value, tuple):
        return list(islice(value if part.quoted else (word for text in value for word in text.split()), most))
    if value is None:
        return [part.raw]
    return [value] if part.quoted else value.split()


def _value(part: WordPart, values: Values) -> Value:
    """The value of a part. A default counts only if the script itself determines whether it is needed."""
    if part.kind == "dynamic":
        listed, changed = _LISTED.fullmatch(part.raw), _CHANGED.fullmatch(part.raw)
        if changed and not listed:
            return _changed_value(changed, values)
        return _list_value(listed, values) if listed else _dynamic_value(part.raw, values)
    if part.text not in values:
        return None
    value = values[part.text]
    if isinstance(value, tuple):
        value = value[0] if value else ""
    if value == "" and part.default is not None:
        return None if re.search(r"[$`'\"\\]", part.default) else part.default
    return value


def _list_value(match: re.Match[str], values: Values) -> Value:
    """The value of `$@`, `${@:2}`, `${list[@]}`, `${#list[@]}`, `${!list[@]}` or `${list[$i]}`."""
    arguments, skipped, mark, name, index = match.groups()
    value = values.get("@" if arguments else name)
    if not arguments and not mark and index in ("@", "*"):
        return value
    if isinstance(value, str) and not arguments:
        value = (value,)
    if not isinstance(value, tuple) or any(map(unknown, value)):
        return value if arguments and isinstance(value, tuple) and not skipped else None
    if arguments:
        return value[max(int(skipped or 1) - 1, 0) :]
    if index in ("@", "*"):
        keys = value.keys if isinstance(value, Table) else tuple(map(str, range(len(value))))
        return str(len(value)) if mark == "#" else keys
    if isinstance(value, Table):
        try:
            words = [word for word in tokens(index) if isinstance(word, Word)]
        except ShellError:
            return None
        named = one(words[0].parts, values) if len(words) == 1 else None
        return value[value.keys.index(named)] if not mark and named in value.keys else None
    place = evaluate(index, dict(values))
    return None if mark or place is None or not -len(value) <= place < len(value) else value[place]


def _changed_value(match: re.Match[str], values: Values) -> str | None:
    """The value of `${#x}`, `${x##*.}`, `${x//,/ }`, `${x,,}` or `${x:1:2}`."""
    length, name, cut, end, where, old, new, case, first, size = match.groups()
    value = values.get(name)
    value = (value[:1] or ("",))[0] if isinstance(value, tuple) else value
    pattern, to = (end or old or "").replace("[^", "[!"), new or ""
    odd = re.search(r"[\"'\\(]|:\]|^[#%]$", pattern) or re.search(r"[\"'\\&]", to)
    if odd or not isinstance(value, str) or unknown(pattern + to) or not affordable(pattern, [value]):
        return None
    if cut:
        places = range(len(value) + 1)
        front = cut[0] == "#"
        cuts = [value[n:] if front else value[: len(value) - n] for n in places]
        lost = (value[:n] if front else value[len(value) - n :] for n in places)
        fits = [left for left, gone in zip(cuts, lost, strict=True) if fnmatchcase(gone, pattern)]
        return value if not fits else fits[-1] if len(cut) > 1 else fits[0]
    if old:
        found = re.sub(r"\\[zZ]$", "", translate(pattern))
        found = {"#": rf"\A{found}", "%": rf"{found}\Z"}.get(where, found)
        if re.fullmatch(found, ""):
            return None
        return re.sub(found, lambda _: to, value, count=0 if where == "/" else 1)
    if first:
        rest = value[int(first) :] if -len(value) <= int(first) else ""
        return rest[: int(size)] if size else rest
    plain = value.isascii() and case
    return str(len(value)) if length else value.lower() if plain == ",," else value.upper() if plain else None


def table(items: Sequence[str]) -> tuple[str, ...] | None:
    """What `([one]=1 [two]=2)` holds; None if it is a list."""
    pairs = [re.fullmatch(r"\[([^][]+)\]=(.*)", item, re.DOTALL) for item in items]
    if not pairs or not all(pairs):
        return None
    found = Table(pair[2] for pair in pairs if pair)
    found.keys = tuple(pair[1] for pair in pairs if pair)
    return tuple(found) if found.keys == tuple(map(str, range(len(found)))) else found


def in_numbers(text: str, values: Values) -> str:
    """An arithmetic text with the lengths and items of lists filled in."""

    def put(match: re.Match[str]) -> str:
        value = _list_value(match, values)
        return value if isinstance(value, str) else match[0]

    def change(match: re.Match[str]) -> str:
        return _changed_value(match, values) or match[0]

    return _LISTED.sub(put, _CHANGED.sub(change, text) if "${" in text else text)


def _dynamic_value(raw: str, values: Values) -> str | None:
    """The value of `$((…))`, `$[…]`, `$(…)` or `$1`."""
    if counted := re.fullmatch(r"\$(?:\(\((.*)\)\)|\[(.*)\])", raw, re.DOTALL):
        text = counted[1] or counted[2] or ""
        text = _INNER.sub(lambda inner: _command_output(inner[1], values) or inner[0], text)
        number = evaluate(in_numbers(text, values), dict(values))
        return None if number is None else str(number)
    if argument := re.fullmatch(r"\$\{?([0-9]|BASH_SOURCE\[0\])(?::?-(\w*))?\}?", raw):
        value = values.get("0" if len(argument[1]) > 1 else argument[1])
        return value or argument[2] or value if isinstance(value, str) else None
    given = values.get("@")
    if raw == "$#" and isinstance(given, tuple):
        return str(len(given))
    quoted = re.sub(r"\\([\\$`])", r"\1", raw[1:-1]) if raw.startswith("`") else ""
    inner = raw[2:-1] if raw.startswith("$(") else quoted
    return _command_output(inner, values) if 0 < len(inner) <= _LONGEST_COMMAND else None


_LONGEST_COMMAND = 200


def _command_output(command: str, values: Values) -> str | None:
    """The output of commands that print the same everywhere."""
    place = re.fullmatch(r"\s*(?:cd\s+(.*)&&\s*)?pwd(?:\s+-[LP])?\s*", command, re.DOTALL)
    try:
        found = tokens(f"realpath {place[1] or '.'}" if place else re.sub(r"\s2>\s*/dev/null", "", command))
    except ShellError:
        return None
    commands = [each for each in simple_commands(found) if each.words or each.read]
    piped = {command.end for command in commands[:-1]} <= {"|"} and commands[-1:]
    text = output_of(commands, values) if piped and commands[-1].end == "\n" else None
    return None if text is None else text.rstrip("\n")


def output_of(commands: Sequence[SimpleCommand], values: Values) -> str | None:
    """What a pipeline prints; None if it is not known."""
    text: str | None = None
    for command in commands:
        words = dropwhile(lambda word: word.plain in LEADING, command.words)
        kept = fields([replace(word, parts=tuple(map(_kept, word.parts))) for word in words], values)
        given = input_of(command, values) if command.read else text
        cut = len(kept) >= MOST_WORDS or any(len(each) >= LONGEST for each in kept)
        if any(map(unknown, kept)) or (command.read and given is None) or command.written or cut:
            return None
        if not kept and len(commands) > 1:
            return None  # `< FILE` prints it only alone
        if kept or command.read:
            text = _printed([each.replace(DOLLAR, "$") for each in kept], given, values)
    return text


def input_of(command: SimpleCommand, values: Values) -> str | None:
    """What `<<<` gives a command, or `<` from a file beside the script; None if it is not known."""
    if not command.read:
        return None
    how, word = command.read[-1]
    if word.raw.startswith("$<("):  # `< <(…)`
        made = _command_output(word.raw[3:-1], values)
        return None if made is None else f"{made}\n"
    text = one(word.parts, values)
    if not isinstance(text, str):
        return None
    if how == "|":
        return text
    return text.removesuffix("\n") + "\n" if how == "<<<" else _contents(text, values)


def shared_out(names: Sequence[str], text: str, by: str | None = None) -> dict[str, Value]:
    """What `read` gives these variables of a line."""
    parts = text.split(by, len(names) - 1) if len(names) > 1 else [text]
    return {name: parts[n].strip(by) if n < len(parts) else "" for n, name in enumerate(names)}


def _contents(path: str, values: Values) -> str | None:
    there = values.get(f"{FILE}{moved(values.get(FOLDER), path)}")
    return there if isinstance(there, str) else None


def _kept(part: WordPart) -> WordPart:
    return replace(part, text=part.text.replace("$", DOLLAR)) if part.kind == "text" else part


def _printed(texts: Sequence[str], text: str | None, values: Values) -> str | None:
    """What one command prints that reads this text; None if it is not known."""
    name, *given = texts or [""]
    if name == "seq":
        by = re.match(r"-s ?(\S)(?: |$)", " ".join(given))
        found = _sequence(given[2 if by and given[0] == "-s" else 1 if by else 0 :])
        return f"{found.replace(chr(10), by[1]) if by else found}\n" if found else found
    host = values.get("HOSTNAME")
    if (name == "hostname" and given in ([], ["-s"])) or (name == "uname" and given == ["-n"]):
        return f"{host.partition('.')[0] if given == ['-s'] else host}\n" if isinstance(host, str) else None
    if name == "dirname" and len(given) == 1:
        return (given[0].rpartition("/")[0] or ("/" if given[0].startswith("/") else ".")) + "\n"
    if name in ("realpath", "readlink") and given and given[:-1] in ([], ["-f"], ["-m"]):
        place = moved(values.get(FOLDER), given[-1])
        return place and f"{place}\n"
    if name == "expr":
        number = evaluate(" ".join(given).replace("\\*", "*"), {})
        return None if number is None else f"{number}\n"
    return printed(texts, text, lambda path: _contents(path, values))


def moved(folder: Value, to: str) -> str | None:
    """The folder that a path leads to from `folder`; None if unknown."""
    start = to if to.startswith(("/", START)) else f"{folder}/{to}" if isinstance(folder, str) else None
    if start is None or unknown(to):
        return None
    if not start.startswith(START):
        return posixpath.normpath(re.sub("^/+", "/", start))[:LONGEST]
    below = posixpath.normpath(start.removeprefix(START).lstrip("/"))
    return START if below == "." else f"{START}/{below}"[:LONGEST]


def unknown(text: str) -> bool:
    """Whether a text contains something that was not evaluated."""
    return re.search(r"[$`]", text) is not None


def _sequence(given: Sequence[str]) -> str | None:
    if not 1 <= len(given) <= 3 or not all(re.fullmatch(r"-?\d{1,9}", number) for number in given):
        return None
    numbers = [int(number) for number in given]
    first, step = (numbers[0] if len(numbers) > 1 else 1), (numbers[1] if len(numbers) > 2 else 1)
    if step == 0:
        return None
    found = range(first, numbers[-1] + (1 if step > 0 else -1), step)
    return "\n".join(map(str, found)) if len(found) <= MOST_TURNS else None


def turns(words: Sequence[Word], values: Values) -> tuple[str, ...] | None:
    """The values of a loop over these words; None if they are unknown."""
    found: list[str] = []
    if "IFS" in values:
        return None
    for word in words:
        texts = _braces(word.plain) if word.plain and "{" in word.plain else fields([word], values)
        found += texts
        if len(found) > MOST_TURNS or any(unknown(text) or re.search(r"[*?\[{]", text) for text in texts):
            return None
    return tuple(found)


def _braces(text: str) -> list[str]:
    """The words of `a{0..3}b` or `{a,b}`, for one pair of braces."""
    match = _BRACES.fullmatch(text)
    if match is None:
        return [text]
    before, first, last, step, listed, after = match.groups()
    if listed is not None:
        return [f"{before}{each}{after}" for each in listed.split(",")]
    by = max(int(step or 1), 1)
    low, high = int(first), int(last)
    width = max(len(first), len(last)) if re.match(r"-?0\d", first) or re.match(r"-?0\d", last) else 0
    numbers = range(low, high + 1, by) if low <= high else range(low, high - 1, -by)
    return [f"{before}{number:0{width}d}{after}" for number in numbers[: MOST_TURNS + 1]]
