"""The Chinese pages have the same parts as the English ones, and what tables tell people to type exists."""

import re
import shlex
from collections import Counter
from collections.abc import Callable
from itertools import product, takewhile
from pathlib import Path
from runpy import run_path

import pytest
import typer

from doctor.cli import app
from doctor.cli.help import below, entries
from doctor.judge.registry import check_ids
from tests.support.paths import ROOT

PAIRS = [
    (path, path.with_name(f"{path.stem}.zh-CN.md")) for path in (ROOT / "README.md", *ROOT.glob("docs/*.md"))
]
PAIRS = [(english, chinese) for english, chinese in PAIRS if chinese.exists()]
ENGLISH, CHINESE = ((ROOT / name).read_text() for name in ("README.md", "README.zh-CN.md"))
DOCS = ROOT / "docs"
START, EVERY = DOCS / "README.md", sorted(DOCS.glob("**/*.md"))
BLOCK = re.compile(r"^```.*?^```\n", re.MULTILINE | re.DOTALL)
NAME = re.compile(r"[\w/-]+\.md")
LINK = re.compile(r"\]\(([^)]+)\)")
OTHER_LANGUAGE = re.compile(r"^.*(?:English \||\| 简体中文).*\n", re.MULTILINE)


def shape(page: str) -> list[str]:
    """The kind of each part: a heading of a level, rows of a table, items of a list, a paragraph."""
    return [_kind(part.splitlines()) for part in BLOCK.sub("", page).split("\n\n") if part.strip()]


def _kind(lines: list[str]) -> str:
    if heading := re.match("#+ ", lines[0]):
        return heading[0]
    if lines[0].startswith("|"):
        return f"table {[line.count('|') for line in lines]}"
    return f"list of {sum(line.startswith('- ') for line in lines)}" if lines[0].startswith("- ") else "text"


def code(page: str) -> list[str]:
    """What is typed in each block; comments and reports are in the language of the page."""
    return [_typed(block.splitlines()) for block in BLOCK.findall(page)]


def _typed(lines: list[str]) -> str:
    kept = lines if lines[0] != "```console" else [line for line in lines if line[:1] in "`$"]
    return "\n".join(re.sub(r"(^|\s)#.*", "", line).rstrip() for line in kept)


def links(page: str) -> list[str]:
    """Where it leads; a page or a picture in its own language counts as that one."""
    return [link.replace(".zh-CN.", ".") for link in LINK.findall(OTHER_LANGUAGE.sub("", page))]


def words_of_code(page: str) -> Counter[str]:
    return Counter(" ".join(word.split()) for word in re.findall(r"`([^`]+)`", BLOCK.sub("", page)))


@pytest.mark.parametrize("of", [shape, code, links, words_of_code], ids=lambda of: of.__name__)
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair[0].stem)
def test_both_are_alike(of: Callable[[str], object], pair: tuple[Path, Path]) -> None:
    english, chinese = (path.read_text() for path in pair)
    assert shape(english)
    assert of(chinese) == of(english)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair[0].stem)
def test_each_leads_to_the_other_in_its_first_lines(pair: tuple[Path, Path]) -> None:
    english, chinese = pair
    assert f"({chinese.name})" in english.read_text().splitlines()[2]
    assert f"({english.name})" in chinese.read_text().splitlines()[2]


def test_a_part_that_is_missing_shows() -> None:
    lines = CHINESE.splitlines(keepends=True)
    cut = [n for n, line in enumerate(lines) if line.startswith(("## ", "- **", "|", "```sh"))]
    assert len(cut) > 20
    for number in cut:
        less = "".join(lines[:number] + lines[number + 1 :])
        assert (shape(less), code(less)) != (shape(CHINESE), code(CHINESE)), lines[number]


def test_the_readme_tells_how_to_run_the_tests_and_shows_a_short_report() -> None:
    for page in (ENGLISH, CHINESE):
        assert re.search("^make test ", page, re.MULTILINE)
        (shown,) = re.findall(r"^```console\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
        assert len(shown.splitlines()) <= 12


def typed_in_tables() -> list[str]:
    rows = [line for page in (ROOT / "README.md", START) for line in page.read_text().splitlines()]
    return list(dict.fromkeys(c for row in rows if row[:1] == "|" for c in re.findall("`(doctor .*?)`", row)))


@pytest.mark.parametrize("command", typed_in_tables())
def test_what_a_table_says_to_type_exists(command: str) -> None:
    root = typer.Context(typer.main.get_command(app), info_name="doctor")
    known = {each.command_path.partition(" ")[2]: each for each in below(root)}
    _, name, *words = shlex.split(command)
    options = {option for each in entries(known[name].command, known[name]) for option in each.names}
    assert options >= {word for word in takewhile("--".__ne__, words) if word.startswith("-")}


def test_every_page_is_found_from_the_first_one() -> None:
    """A Chinese page from the Chinese one; that one links to the English page if there is no other."""
    for start, readme in ((START, ENGLISH), (START.with_name("README.zh-CN.md"), CHINESE)):
        ours = [path for path in ROOT.glob("docs/*.md") if (".zh-CN." in path.name) == (readme is CHINESE)]
        linked = {link.partition("#")[0] for link in LINK.findall(start.read_text())}
        assert linked >= {path.name for path in ours} - {start.name}
        assert f"(docs/{start.name})" in readme


def test_the_site_leads_to_every_page_and_no_page_of_a_user_is_long() -> None:
    long = {page.relative_to(DOCS).as_posix(): len(page.read_text().split()) > 1500 for page in EVERY}
    users, _, others = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2].partition("  - Proofs:")
    assert {name for name in long if ".zh-CN." not in name} <= {*NAME.findall(users + others)}
    assert [name for name in NAME.findall(users) if long.get(name)] == []


@pytest.mark.slow
def test_the_site_has_a_page_of_each_check_and_links_lead_somewhere(tmp_path: Path) -> None:
    run_path(str(ROOT / "scripts" / "docs_pages.py"))["main"](tmp_path / "site")
    for check, (suffix, last) in product(check_ids(), {"": "What to do", ".zh": "处理方法"}.items()):
        page = (tmp_path / "site" / "checks" / f"{check}{suffix}.md").read_text()
        assert (page.startswith(f"# {check}\n"), f"\n## {last}\n" in page) == (True, True), check
    for path in tmp_path.rglob("*.md"):
        for link in re.findall(r"\]\(([^)#:]+)[)#]", BLOCK.sub("", path.read_text())):
            assert (path.parent / link).exists(), (path, link)
