"""The demos, a run with MindSpore, and replays of the other commands, in Chinese at two widths.

A golden file begins with the fingerprint of the English report that it translates. `UPDATE_GOLDEN=1 pytest`
on this file writes them again: read the difference before committing it.
"""

import hashlib
import io
import re
from contextlib import redirect_stdout
from functools import cache, partial
from pathlib import Path

import pytest

from doctor import cli
from doctor.exam.demo import DEMOS, evidence_of, load_demo
from doctor.exam.examination import judge_again
from doctor.exam.request import Request
from doctor.judge.verdict import Report
from doctor.text.console import drawn
from doctor.text.language import Language
from doctor.text.speech import speaking
from doctor.text.wrap import cells
from tests.support.golden import compare
from tests.support.paths import ROOT
from tests.support.reports import print_report, reports

GOLDEN = ROOT / "tests" / "golden" / "zh"
WIDTHS = (80, 200)
MADE = ("smoke-mindspore",)
"""Reports that tests make; the others are demos and commands."""
JOBS = "tests/samples/logs/jobs"
COMMANDS = {
    "hang-loader": f"hang --replay {evidence_of('loader').relative_to(ROOT)}",
    "slow": f"slow --replay {evidence_of('slow').relative_to(ROOT)}",
    **{f"explain-{job}": f"explain {JOBS}/{job}" for job in ("killed", "exception", "drop", "oom")},
    "explain-clean": f"explain {JOBS}/healthy",
    "explain-loss": "explain tests/samples/logs/runs/torchrun-nan.log",
}
NAMES = (*DEMOS, *MADE, *COMMANDS)


@cache
def report(name: str) -> Report:
    if name in MADE:
        return reports()[name]
    return judge_again(Request("demo"), load_demo(name))[1]


@cache
def text(name: str, width: int, lang: Language) -> str:
    if name in (*DEMOS, *MADE):
        with speaking(lang):
            return drawn(partial(print_report, report(name)), width, colour=False)
    shown = io.StringIO()
    with speaking(lang), redirect_stdout(shown), pytest.MonkeyPatch.context() as patched:
        patched.setenv("COLUMNS", str(width))
        patched.chdir(ROOT)
        cli.run([*COMMANDS[name].split(), "--lang", lang.value])
    return shown.getvalue()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", NAMES)
def test_golden(name: str, width: int) -> None:
    english = text(name, width, Language.EN)
    mark = hashlib.sha256(english.encode()).hexdigest()[:12]
    made = f"english {mark}\n{text(name, width, Language.ZH)}"
    compare(GOLDEN / f"{name}.{width}.txt", made)


@pytest.mark.parametrize("name", NAMES)
def test_no_line_is_wider_than_the_terminal(name: str) -> None:
    for line in text(name, 80, Language.ZH).splitlines():
        is_command = re.match(r" {8}\S|.* {6}ssh ", line) or "doctor " in line
        assert is_command or cells(line) <= 80, line


@pytest.mark.parametrize("name", DEMOS)
def test_the_columns_of_the_table_stand_below_each_other(name: str) -> None:
    lines = text(name, 200, Language.ZH).splitlines()
    heads = [at for at, line in enumerate(lines) if line.startswith("主机 ")]
    for at in heads:
        column = cells(lines[at][: lines[at].index("结论")])
        for row in lines[at + 1 :]:
            if not row or row.startswith(("全部正常", "另有")):
                break
            assert _cut(row, column).endswith("  "), row
    assert heads or name == "healthy"


def _cut(line: str, width: int) -> str:
    """The first characters of a line, up to a width in cells."""
    kept = ""
    for sign in line:
        if cells(kept + sign) > width:
            break
        kept += sign
    return kept


@pytest.mark.parametrize("name", DEMOS)
def test_ids_and_commands_are_the_same_in_both_languages(name: str) -> None:
    for finding in report(name).findings:
        shown = [text(name, 200, lang) for lang in Language]
        commands = finding.remedy.commands if finding.remedy else ()
        heads = [each.partition("  #")[0] for each in commands if not each.startswith("#")]
        for each in (finding.check, *heads):
            assert (each in shown[0]) == (each in shown[1]), each


def test_the_goldens_are_those_of_the_demos() -> None:
    made = {path.name for path in Path(GOLDEN).iterdir()}
    assert made <= {f"{name}.{width}.txt" for name in NAMES for width in WIDTHS}
