"""What programs print that only change text: `echo a,b | tr , " "`, `cut`, `head`, `sed`, `awk`.."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import cycle

Lines = list[str]
MOST = 20_000
"""The most characters that a program reads."""
_CLASSES = {"digit": "0-9", "alpha": "A-Za-z", "alnum": "A-Za-z0-9", "space": r" \t\n", "blank": r" \t"}
_ODD = re.compile(
    r"\)[*+?{]|\[:|\[\[|\[[^\]]*\\|\(\?|\\[^.\w/(){}+?|*$^\[\]-]|\\[a-zA-Z0-9]|[^\[(|]\^|\$[^|)]"
)
"""What Python reads in another way, or what takes long."""
_SUBSTITUTE = re.compile(r"s([/|,#:@!])((?:\\.|(?!\1).)*)\1((?:\\.|(?!\1).)*)\1(g?)", re.DOTALL)
_LINE_OF_SED = re.compile(r"(?:(\d{1,4}|\$)([pd]|q;d)|/((?:\\.|[^/])*)/([pd]))")
_OF_AWK = re.compile(
    r"\s*(?:(?P<not>!)?/(?P<with>[^/]*)/|NR\s*==\s*(?P<line>\d{1,4}))?\s*"
    r"(?:\{\s*print(?:\s+\$(?P<field>\d{1,2}|NF))?\s*;?\s*(?P<once>exit)?;?\s*\})?\s*"
)


def pattern(text: str, extended: bool) -> re.Pattern[str] | None:
    """A regular expression of grep or sed; None if it is not simple enough to mean the same here."""
    for name, members in _CLASSES.items():
        text = text.replace(f"[:{name}:]", members)
    if not extended:
        text = re.sub(r"\\?[+?|(){}]", lambda sign: sign[0][1:] or f"\\{sign[0]}", text)
    if len(text) > 100 or _ODD.search(text):
        return None
    try:
        return re.compile(text)
    except (re.error, OverflowError):
        return None


def affordable(pattern: str, texts: Sequence[str]) -> bool:
    """Whether a search for this pattern ends soon, however it is written."""
    longest, endless = max(map(len, texts), default=0), len(re.findall(r"[*+{?|]", pattern))
    return float(longest) ** (endless + 1) < 4 * 10**6


def _options(words: Sequence[str], valued: str) -> tuple[dict[str, str], list[str]]:
    """The short options of a program, those in `valued` with their values, and the other words. An option
    that is given twice is "?".
    """
    given: dict[str, str] = {}
    rest, left = [], list(words)
    while left:
        word = left.pop(0)
        if not re.match(r"-[A-Za-z0-9]", word):
            rest.append(word)
            continue
        while word := word[1:]:
            if word[0] in valued:
                given |= {"?": ""} if word[0] in given else {}
                given[word[0]] = word[1:] or (left.pop(0) if left else "")
                break
            given[word[0]] = ""
    return given, rest


def _tr(words: Sequence[str], text: str) -> str | None:
    given, sets = _options(words, "")
    signs = [re.sub(r"\[:(\w+):\]", lambda found: _CLASSES.get(found[1], "$"), each) for each in sets]
    spelled = [each.replace("\\n", "\n").replace("\\t", "\t").replace("\\r", "\r") for each in signs]
    ranges = [re.sub(r"(\w)-(\w)", lambda two: _between(*two.groups()), each) for each in spelled]
    if (
        not (1 if given.keys() & {"d", "s"} else 2) <= len(ranges) < 3
        or "$" in "".join(ranges)
        or given.keys() - {"d", "c", "C", "s"}
    ):
        return None
    odd = given.keys() & {"c", "C"}
    chosen = {sign for sign in text if (sign in ranges[0]) != bool(odd)}
    last = ranges[1][-1:] if len(ranges) > 1 else ""
    if "d" in given:
        text = "".join(sign for sign in text if sign not in chosen)
    elif last:
        to = {sign: last if odd else ranges[1][ranges[0].index(sign) :][:1] or last for sign in chosen}
        text = "".join(to.get(sign, sign) for sign in text)
    squeezed = "".join(map(re.escape, {*ranges[-1]})) if "s" in given and not odd else ""
    return re.sub(rf"([{squeezed}])\1+", r"\1", text) if squeezed else text


def _between(first: str, last: str) -> str:
    return "".join(map(chr, range(ord(first), ord(last) + 1)))


def _cut(words: Sequence[str], lines: Lines) -> Lines | None:
    given, rest = _options(words, "dfc")
    by, asked = given.get("d", "\t"), re.fullmatch(r"(\d*)(-?)(\d*)", given.get("f") or given.get("c") or "")
    if not asked or not (asked[1] or asked[3]) or rest or given.keys() - set("dfc"):
        return None
    first = int(asked[1] or 1) - 1
    last = int(asked[3] or MOST) if asked[2] else first + 1
    if "c" in given:
        return [line[first:last] for line in lines]
    return [by.join(line.split(by)[first:last]) if by and by in line else line for line in lines]


def _ends(words: Sequence[str], lines: Lines, head: bool) -> Lines | None:
    said = re.fullmatch(r"(?:-n ?|--lines=|-)?([+-]?\d{1,4})|", " ".join(words))
    if not said:
        return None
    number = int(said[1] or 10)
    if head or (said[1] or "")[:1] == "+":
        return lines[:number] if head else lines[max(number - 1, 0) :]
    return lines[-number:] if number else []


def _grep(words: Sequence[str], lines: Lines) -> Lines | None:
    given, rest = _options(words, "e")
    found = pattern(given.get("e") or "".join(rest[:1]), bool(given.keys() & {"E", "P"}))
    if (
        found is None
        or len(rest) + ("e" in given) != 1
        or given.keys() - set("eEPvoc")
        or not affordable(found.pattern, lines)
    ):
        return None
    if "o" in given and "|" in found.pattern:
        return None  # the longest of several counts
    if "o" in given:
        return [match[0] for line in lines for match in found.finditer(line) if match[0]]
    hits = [line for line in lines if bool(found.search(line)) != ("v" in given)]
    return [str(len(hits))] if "c" in given else hits


def _sed(words: Sequence[str], lines: Lines) -> Lines | None:
    given, rest = _options(words, "e")
    extended, program = bool(given.keys() & {"E", "r"}), given.get("e") or "".join(rest[:1])
    parts = [program] if program.endswith("q;d") else re.split(r";\s*", program)
    for part in parts:
        chosen, changes = _LINE_OF_SED.fullmatch(part), _SUBSTITUTE.fullmatch(part)
        found = pattern((chosen and chosen[3]) or (changes and changes[2]) or "", extended)
        known = (chosen or changes) and not given.keys() - set("nEre") and len(rest) + ("e" in given) == 1
        if found is None or not known or not affordable(found.pattern, lines):
            return None
        numbered = chosen and (chosen[1] or chosen[4] == "p")
        if (numbered and len(parts) > 1) or (changes and not _plain_change(found, changes, "n" in given)):
            return None
        if changes:
            to = re.sub(r"(?<!\\)&", r"\\g<0>", changes[3].replace("\\&", "\0")).replace("\0", "&")
            to = re.sub(r"\\([^\dgn])", r"\1", to)
            lines = "\n".join(found.sub(to, line, 0 if changes[4] else 1) for line in lines).split("\n")
        elif chosen:
            at = len(lines) if chosen[1] == "$" else int(chosen[1] or 0)
            hits = [bool(found.search(line)) if chosen[4] else n == at for n, line in enumerate(lines, 1)]
            lost = (chosen[2] or chosen[4]) == "d"
            lines = [line for line, hit in zip(lines, hits, strict=True) if hit != lost]
            if chosen[2] != "q;d" and not lost and "n" not in given:
                return None
    return lines


def _plain_change(found: re.Pattern[str], changes: re.Match[str], silent: bool) -> bool:
    """Whether Python replaces the same: no empty text, the first of several, letter of C or lost group."""
    odd = re.search(r"\\(?![1-9&/.,|]|$)|\\$", changes[3]) or "|" in found.pattern
    groups = all(int(each) <= found.groups for each in re.findall(r"\\(\d)", changes[3]))
    escaped = f"\\{changes[1]}" in changes[2] and changes[1] != "/"
    return groups and not (odd or silent or escaped or found.fullmatch(""))


def _awk(words: Sequence[str], lines: Lines) -> Lines | None:
    given, rest = _options(words, "F")
    by, said = given.get("F"), _OF_AWK.fullmatch("".join(rest[:1]))
    if not said or given.keys() - {"F"} or (by and len(by) > 1) or len(rest) > 1:
        return None
    found = pattern(said["with"] or "", True)
    if found is None or (said["not"] and not said["with"]) or not affordable(found.pattern, lines):
        return None
    rows = [line for n, line in enumerate(lines, 1) if n == int(said["line"] or n)]
    rows = [line for line in rows if bool(found.search(line)) != bool(said["not"])]
    rows = rows[:1] if said["once"] else rows
    parts = [[line, *(line.split(by) if by else line.split()), ""] for line in rows]
    place = said["field"] or "0"
    return [row[len(row) - 2] if place == "NF" else (row[int(place) :] or [""])[0] for row in parts]


def _sorted(words: Sequence[str], lines: Lines) -> Lines | None:
    """The order is that of every language, or it is not known."""
    found = sorted({*lines} if "-u" in words else lines)
    odd = {*words} - {"-u", "-r"} or found != sorted(found, key=lambda line: re.sub(r"\W", "", line).lower())
    return None if odd else found[:: -1 if "-r" in words else 1]


_PROGRAMS: Mapping[str, Callable[[Sequence[str], Lines], Lines | None]] = {
    "cut": _cut,
    "head": lambda words, lines: _ends(words, lines, True),
    "tail": lambda words, lines: _ends(words, lines, False),
    "grep": _grep,
    "egrep": lambda words, lines: _grep(["-E", *words], lines),
    "sed": _sed,
    "awk": _awk,
    "sort": _sorted,
    "tac": lambda words, lines: None if words else lines[::-1],
    "uniq": lambda words, lines: None if words else [x for n, x in enumerate(lines) if lines[:n][-1:] != [x]],
    "xargs": lambda words, lines: (
        None if words or re.search(r"[\"'\\]", "".join(lines)) else [" ".join(" ".join(lines).split())]
    ),
    "paste": lambda words, lines: [",".join(lines)] if "".join(words) in ("-sd,", "-s-d,") else None,
}


def printed(words: Sequence[str], text: str | None, read: Callable[[str], str | None]) -> str | None:
    """What one program prints that reads this text or the files that it names; None if it is not known."""
    name, given = words[0].rpartition("/")[2] if words else "cat", [*words[1:]]
    if name == "echo":
        said, end = " ".join(given[given[:1] in (["-n"], ["-e"]) :]), "" if given[:1] == ["-n"] else "\n"
        said = said.replace("\\n", "\n") if given[:1] == ["-e"] else said
        return None if re.search(r"(?:^| )-\w|[*?\[{\\]", said) else said + end
    if name == "printf" and given:
        return _formatted(given[0], given[1:])
    if text is None and name != "wc" and given and not given[-1].startswith("-"):
        text = read(given.pop())
    if text is None or len(text) > MOST:
        return None
    if name == "tr":
        return _tr(given, text)
    if name == "wc" and given in (["-l"], ["-w"]):
        return f"{text.count(chr(10)) if given == ['-l'] else len(text.split())}\n"
    lines = text.removesuffix("\n").split("\n") if text else []
    if name == "cat" and not given:
        return text
    return _changed(name, tuple(given), tuple(lines)) if name in _PROGRAMS else None


def _formatted(text: str, given: Sequence[str]) -> str | None:
    """What printf prints: its format again and again, as long as there are words for it."""
    text = text.replace("\\n", "\n").replace("\\t", "\t")
    holes = re.findall("%[sd]", text)
    odd = re.search(r"\\|%(?![sd])", text) or re.search(r"[*?\[{]", " ".join(given))
    if odd or (not given or len(given) % len(holes) if holes else given):
        return None
    pairs = zip(cycle(holes), given)
    if any(hole == "%d" and not re.fullmatch(r"-?(?:0|[1-9]\d*)", each) for hole, each in pairs):
        return None
    filling, times = iter(given), max(len(given) // len(holes or "1"), 1)
    return re.sub("%[sd]", lambda _: next(filling), text * times)


@lru_cache(256)
def _changed(name: str, words: tuple[str, ...], lines: tuple[str, ...]) -> str | None:
    """A loop asks for the same again and again."""
    found = _PROGRAMS[name](words, [*lines])
    return None if found is None else "".join(f"{line}\n" for line in found)
