"""Terminals as pictures: what `doctor` shows, as an SVG that needs no font and no network."""

import contextlib
import io
import re
from html import escape, unescape
from pathlib import Path
from unittest.mock import patch

from rich.console import Console
from rich.text import Text

from doctor import cli
from doctor.exam.demo import load_demo
from doctor.judge.registry import FoundChecks
from doctor.text.language import Language
from doctor.text.speech import speaking
from doctor.text.wrap import cells
from tests.support.cases import from_cases
from tests.support.recordings import answered

COLUMNS = 100
_TEXT = re.compile(r'<text ([^>]*)x="([\d.]+)"([^>]*)textLength="([\d.]+)"([^>]*)>([^<]*)</text>')
_OF_ONE_WIDTH = re.compile(r"[\u2e80-\uffff]+|[^\u2e80-\uffff]+")
PAGE = from_cases(__file__, "PAGE", str)


def picture(demo: str, lang: Language = Language.EN) -> str:
    """Asserts that the demo was shown. COLUMNS must be set: it determines the width of the report."""
    known = FoundChecks(answered(load_demo(demo)), ())
    with patch("doctor.exam.examination.find_checks", return_value=known):
        return _drawn(["demo", demo], 0, f"doctor demo {demo}", f"demo-{demo}", lang)


def picture_of_hang(evidence: Path, lang: Language = Language.EN) -> str:
    return _drawn(["hang", "--replay", str(evidence)], 1, "doctor hang 'node[1-4]'", "hang-loader", lang)


def picture_of_slow(evidence: Path) -> str:
    return _drawn(["slow", "--replay", str(evidence)], 1, "doctor slow 'node[1-4]'", "slow")


def _drawn(words: list[str], code: int, title: str, name: str, lang: Language = Language.EN) -> str:
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown), speaking(lang):
        assert cli.run([*words, "--color", "always", "--lang", lang.value]) == code
    paper = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    paper.print(Text.from_ansi(shown.getvalue()))
    drawn = paper.export_svg(title=title, code_format=PAGE, unique_id=name)
    return _TEXT.sub(_by_width, "".join(f"{line.rstrip()}\n" for line in drawn.splitlines()))


def _by_width(found: re.Match[str]) -> str:
    """A text with Chinese characters in pieces, as wide as their cells: rich counts each of them as one."""
    head, x, middle, length, tail, said = found.groups()
    text = unescape(said)
    if cells(text) == len(text):
        return found[0]
    cell, at, made = float(length) / len(text), float(x), []
    for each in _OF_ONE_WIDTH.finditer(text):
        wide, shown = cells(each[0]) * cell, escape(each[0]).replace("\xa0", "&#160;")
        large = ' style="font-size:23px"' if wide > cell * len(each[0]) else ""
        made.append(f'<text {head}x="{at:.5g}"{middle}textLength="{wide:.5g}"{tail}{large}>{shown}</text>')
        at += wide
    return "".join(made)


def uncounted(drawn: str) -> str:
    """A picture without the counts of all checks, so that a new check changes nothing else."""
    drawn = re.sub(r"\d+(&#160;(checks|results|passed)\b)", r"N\1", drawn)
    drawn = re.sub(r"\d+(&#160;</text><text[^>]*>(项检查|个结果))", r"N\1", drawn)
    return re.sub(r"((通过|全部通过)</text><text[^>]*>&#160;)\d+", r"\1N", drawn)
