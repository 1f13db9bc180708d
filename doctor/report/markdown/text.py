"""Untrusted text as Markdown that only shows it.

A word that a renderer could take for markup, a mention, a reference or a link becomes code, in which GitHub,
GitLab and chats ignore all of these. It reads well too: a word with such characters is a path, a variable or
a node set. Untrusted text never begins a line outside of code.
"""

import html
import re
from collections.abc import Iterable, Sequence
from itertools import groupby

from doctor.text.printable import clean, clean_line
from doctor.text.speech import t

LONGEST = 400
_RISKY = re.compile(
    r"""[`*_\[\]<&|\\~$@#{}^]            # markup, mentions, references
    | (?<!\d):\w+: | [!%]\w | (?i:\bgh-\d) | \b[A-Z]{2,}-\d   # emoji, references of GitLab, GitHub and Jira
    | :// | (?i:\bwww\.)                # links
    | \b(?=[a-f]*\d)[0-9a-f]{7,40}\b   # commits
    """,
    re.VERBOSE,
)
_TICKS = re.compile("`+")
_BEGIN = re.compile(r"^(\d*)([.)+>=-])")
"""What a list or a quote could begin with."""
_CHINESE = re.compile(r"[^\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]+")
"""Text between Chinese characters."""


def inline(text: str, most: int = LONGEST) -> str:
    """A sentence in the language that is spoken; it must not be at the beginning of a line."""
    return verbatim(t(text), most)


def verbatim(text: str, most: int = LONGEST) -> str:
    line = clean_line(" ".join(text.split()))
    line = line if len(line) <= most else f"{line[: most - 1]}…"
    parts = groupby(line.split(), key=lambda word: _RISKY.search(word) is not None)
    return " ".join(_enclosed(" ".join(words)) if risky else " ".join(words) for risky, words in parts)


def _enclosed(text: str) -> str:
    """The text as code, without the Chinese and the punctuation of the sentence around it."""
    return _CHINESE.sub(lambda each: _code_inside(each[0]) if _RISKY.search(each[0]) else each[0], text)


def _code_inside(text: str) -> str:
    inner = text.strip("(.,;: )")
    before, _, after = text.partition(inner)
    return f"{before}{code(inner)}{after}" if inner else code(text)


def code(text: str) -> str:
    """The text as code; its fence of backticks is longer than any run of backticks in it."""
    line = clean_line(" ".join(text.split()))
    ticks = "`" * (_longest(line) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{ticks}{pad}{line}{pad}{ticks}" if line else ""


def cell(text: str) -> str:
    """The text for a cell of a table; a bar would divide the cell even inside code, so it is escaped."""
    return inline(text.replace("|", r"\x7c"))


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are already Markdown."""
    return "".join(map(row, (head, ["---"] * len(head), *rows)))


def row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


def item(line: str) -> str:
    """An item of a list, from Markdown that may begin like another list."""
    return "- " + _BEGIN.sub(r"\1\\\2", line) + "\n"


def block(text: str, kind: str) -> str:
    """The unchanged lines between fences that are longer than any fence in them."""
    fence = "`" * max(3, _longest(text) + 1)
    return f"{fence}{kind}\n{clean(text)}\n{fence}\n"


def folded(summary: str, name: str, inside: str) -> str:
    """A block that a click unfolds; `name` is untrusted."""
    shown = f" <code>{html.escape(clean_line(name))}</code>" if name else ""
    return f"<details><summary>{summary}{shown}</summary>\n\n{inside}\n</details>\n"


def _longest(text: str) -> int:
    return max(map(len, _TICKS.findall(text)), default=0)
