"""Text that others wrote, as Markdown that shows it and does nothing else.

A word that a renderer could take for markup, a mention, a reference or a link becomes code, in which GitHub,
GitLab and chats look for none of these. It reads well, too: what has such characters is a path, a variable or
a node set. No text of others begins a line outside of code.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from itertools import groupby

from doctor.text.printable import clean, clean_line

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


def inline(text: str, most: int = LONGEST) -> str:
    """In a line, never at its beginning."""
    line = clean_line(" ".join(text.split()))
    line = line if len(line) <= most else f"{line[: most - 1]}…"
    parts = groupby(line.split(), key=lambda word: _RISKY.search(word) is not None)
    return " ".join(_enclosed(" ".join(words)) if risky else " ".join(words) for risky, words in parts)


def _enclosed(text: str) -> str:
    """As code, but for the punctuation of the sentence around it."""
    inner = text.strip("(.,;:)")
    before, _, after = text.partition(inner)
    return f"{before}{code(inner)}{after}" if inner else code(text)


def code(text: str) -> str:
    """All of it as code; a run of backticks ends it only if it is exactly as long as the first one."""
    line = clean_line(" ".join(text.split()))
    ticks = "`" * (_longest(line) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{ticks}{pad}{line}{pad}{ticks}" if line else ""


def cell(text: str) -> str:
    """In a table, which a bar would divide, in code as well."""
    return inline(text.replace("|", r"\x7c"))


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Of cells that are Markdown already."""
    return "".join(map(row, (head, ["---"] * len(head), *rows)))


def row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


def block(text: str, kind: str) -> str:
    """Lines as they are, between fences longer than any in them."""
    fence = "`" * max(3, _longest(text) + 1)
    return f"{fence}{kind}\n{clean(text)}\n{fence}\n"


def folded(summary: str, name: str, inside: str) -> str:
    """Unfolded by a click; `name` was written by others."""
    shown = f" <code>{html.escape(clean_line(name))}</code>" if name else ""
    return f"<details><summary>{summary}{shown}</summary>\n\n{inside}\n</details>\n"


def _longest(text: str) -> int:
    return max(map(len, _TICKS.findall(text)), default=0)
