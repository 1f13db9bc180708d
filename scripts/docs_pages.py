"""`python scripts/docs_pages.py FOLDER`: all pages of the site, for mkdocs.

Copies docs/, the pages beside it and examples/, with links that hold there, and adds pages of the manual:
one for each check and one for each subject of log messages, as `doctor explain` prints them, in English and
in Chinese.
"""

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from pathlib import Path

from doctor.cli.catalogue import is_ours, of_check
from doctor.cli.explain.page import HEADING, PLACEHOLDER, TextPage, print_page
from doctor.cli.explain.symptom_page import page_of
from doctor.judge.registry import find_checks
from doctor.logs.symptoms.load import load_symptoms
from doctor.report.page.areas import AREAS, area_of
from doctor.text.language import Language, in_language
from doctor.text.printable import clean
from doctor.text.speech import speaking, spoken, t
from doctor.text.wrap import unwrap

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"(?<=\]\()([^)#:]+)(?=[)#])")
LANGUAGES = re.compile(r"^(?:English \| .*|.* \| 简体中文)\n\n", re.MULTILINE)
LIST = re.compile(r"(?<!^)(?=^[-*] )", re.MULTILINE)
MARKS = re.compile(r"`[^`]*`|(?m:^\* )|\*\w+\*(?!\w)|[*<]")
UPPER = ("acl", "cann", "hccl", "jax", "mpi", "nccl", "npu", "ucx")
NAMES = {
    **{name: name.upper() for name in UPPER},
    "mindspore": "MindSpore",
    "rocm": "ROCm",
    "torch_npu": "torch_npu",
}
NESTED = re.compile(r"^   (?=\S)", re.MULTILINE)
"""What belongs to an item of a numbered list: mkdocs wants four blanks."""


class MarkdownPage(TextPage):
    """Lays out a page of `doctor explain` in Markdown."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.quotes = False

    def put(self, *text: str) -> None:
        self.parts += text

    @property
    def text(self) -> str:
        """The page; neighbouring blocks of code are one."""
        return re.sub(r"```\n\n?```(?:sh|text)\n", "", "".join(self.parts))

    def head(self, id: str, what: str) -> str:
        return f"# {id}\n\n*{re.split('[:：]', t(f'{id}: {what}.'), maxsplit=1)[1].strip()}*\n"

    def strong(self, text: str, style: str = "") -> str:  # noqa: ARG002
        return f"## {text}\n"

    def title(self, text: str) -> str:
        return f"\n**{plain(unwrap(text))}**\n"

    def heading(self, text: str) -> str:
        self.quotes = text == "In the logs"
        return f"\n## {t(text)}\n\n"

    def paragraph(self, text: str) -> str:
        found = HEADING.match(text)
        if not found or re.search(r"^(?:\s|[-*] )", text, re.MULTILINE):
            return f"\n{LIST.sub(chr(10), plain(clean(text)), count=1)}\n"
        body = plain(unwrap(text[found.end() :]))
        body = body[:1].upper() + body[1:] if body.partition(" ")[0].rstrip(",;").isalpha() else body
        return f"\n## {found[1] or found[2]}\n\n{body}\n"

    def command(self, text: str) -> str:
        return fenced(PLACEHOLDER.sub(lambda hole: hole[1].upper(), text), "sh")

    def prose(self, text: str, indent: str = "", hanging: str = "") -> str:
        whole = unwrap(clean(text))
        if self.quotes and indent:
            return fenced(whole, "text")
        linked = re.sub(r"doctor explain ([a-z0-9-]+)$", r"[`\g<0>`](../checks/\1.md)", plain(whole))
        return f"{linked}\n" if hanging else f"\n{linked}\n"


def plain(text: str) -> str:
    """The text without what Markdown alone would take for a mark; `code` and *words* stay."""
    return MARKS.sub(lambda found: {"*": "\\*", "<": "&lt;"}.get(found[0], found[0]), text)


def fenced(text: str, language: str) -> str:
    return f"```{language}\n{text}\n```\n"


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = (head, ("---",) * len(head), *rows)
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def said(english: str, chinese: str) -> str:
    return in_language(spoken(), english, chinese)


def checks() -> Iterator[tuple[str, str]]:
    """The page of each check, and the first one, which lists them by area."""
    ours = [check for check in find_checks().checks if is_ours(check)]
    kinds = {"fail": said("fault", "故障"), "warn": said("warning", "告警")}
    head = (said("check", "检查项"), said("kind", "类别"), said("finds", "发现的问题"))
    first = [f"# {said('All checks', '全部检查')}\n"]
    for area in AREAS:
        of_it = [check for check in ours if area_of(check.id) == area]
        for check in of_it:
            page = MarkdownPage()
            print_page(check.id, page)
            yield f"checks/{check.id}", page.text
        rows = [(f"[{id}]({id}.md)", kinds[status], title) for id, status, title in map(of_check, of_it)]
        title = re.split("[:：]", t(f"CHECKS: {area}"))[1].strip().capitalize()
        first.append(f"\n## {title}\n\n{table(head, rows)}")
    yield "checks/README", "".join(first)


def symptoms() -> Iterator[tuple[str, str]]:
    """A page for each subject with all messages that `doctor explain` knows of it, and the first one."""
    known = [check.id for check in find_checks().checks]
    rows = []
    found = sorted(load_symptoms().symptoms, key=lambda each: each.family)
    for family, of_it in groupby(found, key=lambda each: each.family):
        name, texts = NAMES.get(family, family.capitalize()), []
        for symptom in of_it:
            page = MarkdownPage()
            page.put(*page_of(symptom, known, page))
            texts.append(lower(page.text))
        yield f"symptoms/{family}", "\n".join((f"# {name}\n", *texts))
        rows.append((f"[{name}]({family}.md)", str(len(texts))))
    head = (said("subject", "主题"), said("messages", "消息数"))
    yield "symptoms/README", f"# {said('Log messages', '日志消息')}\n\n{table(head, rows)}"


def lower(page: str) -> str:
    """A page within another one: its title is a heading, and its headings are bold."""
    return "#" + re.sub(r"^## (.*)$", r"**\1**", page, flags=re.MULTILINE)


def copy(into: Path) -> None:
    """Each page and picture, and what the pages lead to."""
    shutil.copytree(ROOT / "docs", into, dirs_exist_ok=True)
    shutil.copytree(ROOT / "examples", into / "examples")
    for name in ("README.md", "README.zh-CN.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE"):
        shutil.copy(ROOT / name, into / place(name))
    for page in list(into.rglob("*.md")):
        text = moved(page.read_text(), page.relative_to(into).as_posix())
        page.write_text(NESTED.sub("    ", LANGUAGES.sub("", text)))
    for path in list(into.rglob("*.zh-CN.*")):
        path.rename(path.with_name(path.name.replace(".zh-CN.", ".zh.")))


def place(name: str) -> str:
    """Where a file of the project stands on the site, whose first page is the README of docs/."""
    if name.startswith("docs/"):
        return name.removeprefix("docs/")
    return re.sub("^README", "about", name)


def origin(here: str) -> str:
    """The file of the project that stands there."""
    beside = here.startswith(("examples/", "about", "CONTRIBUTING", "CHANGELOG"))
    return here if beside else f"docs/{here}"


def moved(text: str, here: str) -> str:
    """The page with links that hold there; the name of the English page leads to that in the own language."""
    was, now = os.path.dirname(origin(here)), os.path.dirname(here)

    def link(match: re.Match[str]) -> str:
        goal = place(os.path.normpath(os.path.join(was, match[1])))
        return os.path.relpath(goal, now or ".").replace(".zh-CN.", ".")

    return LINK.sub(link, text)


def main(into: Path) -> None:
    shutil.rmtree(into, ignore_errors=True)
    copy(into)
    makers: tuple[Callable[[], Iterator[tuple[str, str]]], ...] = (checks, symptoms)
    for language, suffix in ((Language.EN, ""), (Language.ZH, ".zh")):
        with speaking(language):
            for name, text in (page for maker in makers for page in maker()):
                path = into / f"{name}{suffix}.md"
                path.parent.mkdir(exist_ok=True)
                path.write_text(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
