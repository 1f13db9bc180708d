"""Every sentence that can reach a person, as a template, with its place: from the code by `ast`, and from the
titles, causes and remedies of the playbooks.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import yaml

from doctor.text.hostprogram import sections
from tests.support.paths import CHARGES, COMMANDS, FLAWS, INJECTIONS, NO_ANSWER, REASONS, REFUSALS, ROOT, SAID

Sentence = tuple[str, str]
"""Where it is, and its template: `{}` is a hole, `{a|b}` a choice of words."""
_WORDS = re.compile(r"[a-z]{2,}[a-z']*[,:;]? +[a-z(`{]", re.IGNORECASE)
_PROGRAM = re.compile(
    r"\\[dswbSn(.\[]|\(\?|\$\(|2>|\|\||&&|^\s*[<#^]|\$[{A-Z@]|;;|^(?:-\w, )?--?[a-z-]+ \S+$"
    r"|^(?:sudo|ssh|doctor|python3?|(?:time )?\{\} -c|dmesg|journalctl|import|kill|pip|py-spy|getent|scontrol"
    r"|exec|export|unset|grep|openssl) |^(?:cat|cksum|d[fu]|ip|ls|ps) [-/{]|^ip (?:route|rule) "
    r"|^(?:amd-smi|npu-smi|hccn_tool|nvidia-smi) (?:-|info|metric|nvlink|process|topo|\{\}$)"
    r"|; (?:do|done|esac|exit|export)\b|^\.[A-Z]{2} |[\u4e00-\u9fff]|\bq \w+ \w+ --|^env [A-Z_]+=|'none';"
    r"|^(?:[^{]|\{[^}]*\})*[\w)]\|[\w\[(]|\| sudo tee|^read -r |^mindspore\.set_"
    r"|communicate with the nvidia driver$|^Mesh should not be bigger"
)
_COMMENT = re.compile(r"^(?:.*?\s{2,}# |\s*# )(\S.*)$")
"""A command and what is said about it."""
_LOOKED_FOR = (
    *("get", "startswith", "endswith", "partition", "rpartition", "removeprefix", "removesuffix", "split"),
)
_KEPT = re.compile("`[^`]*`|'[^']*'|\"[^\"]*\"|doctor [^，。；]*|(?:sudo )?systemctl [^，。；）]*")
"""What stays English."""
_LEFT = re.compile(r"(?<![\w/.=-])[a-z]{2,},? [a-z]{2,},? [a-z]{2,}(?![\w/=])")
"""Three English words in a row."""
_ENDS = re.compile(r"^(?:\{\}|[\s.,;:])+|(?:\{\}|[\s.,;:])+$")
_QUOTES = ("Evidence", "compile")
_NO_PROSE = (
    *("onhost", "probe/script", "completion", "smoke/hook", "demos", "transport/remote", "text/secret"),
    *("logs/forms/", "logs/judge/kinds", "logs/judge/deaths", "logs/judge/blame", "logs/loss/lines"),
    *("logs/reading/actors", "logs/reading/commands", "logs/sources/kind", "logs/symptoms/numbers"),
    *("cli/otherwords", "launch/wrappers", "logs/symptoms/valid", "logs/reading/stacks", "report/page/card"),
)
"""Files whose strings are programs, or what logs say."""


def sentences() -> list[Sentence]:
    return [*_of_code(), *_of_playbooks(), *_of_entries(), *_of_tables()]


def _of_entries() -> Iterator[Sentence]:
    """What is said, and what to do; of a command also what its examples do."""
    of_tables = ((REFUSALS, 1), (INJECTIONS, 1), (FLAWS, 1), (REASONS, 2), (NO_ANSWER, 2), (CHARGES, 2))
    for path, at in of_tables:
        for row in path.read_text().split("\n\n")[1:]:
            lines = row.splitlines()[at : at + (3 if path == CHARGES else 2)]
            texts = (re.sub(r"\{\w[^{}]*\}", "{}", each) for each in lines)
            yield from ((path.name, each) for each in texts if is_prose(each))
    for line in COMMANDS.read_text().splitlines():
        if is_prose(text := line.rpartition("  ")[2]):
            yield COMMANDS.name, text


def _of_tables() -> Iterator[Sentence]:
    for name in SAID:
        told = sections(str(ROOT / "doctor" / name), Path(name).name)
        yield from ((name, words) for each in told.values() for words in each.values() if is_prose(words))


def _of_code() -> Iterator[Sentence]:
    for folder in ("doctor", "checks"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            where = str(path.relative_to(ROOT))
            if not any(part in where for part in _NO_PROSE):
                found = Strings()
                found.visit(ast.parse(path.read_text()))
                texts = (
                    comment[1] if (comment := _COMMENT.fullmatch(each)) else each for each in found.texts
                )
                yield from ((where, each) for each in dict.fromkeys(texts) if is_prose(each))


def is_prose(text: str) -> bool:
    return bool(_WORDS.search(text)) and not _PROGRAM.search(text) and len(text) < 600


class Strings(ast.NodeVisitor):
    """Strings that may be said: no docstrings, nothing that is quoted, compared or looked up."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.choices: dict[str, str] = {}
        """Variables that hold one of two words."""

    def visit_Assign(self, node: ast.Assign) -> None:
        (*_, target) = node.targets
        if isinstance(target, ast.Name) and (choice := _choice(node.value)):
            self.choices[target.id] = choice
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value:
            self.visit(node.value)

    def visit_Compare(self, node: ast.Compare) -> None:
        self._visit_unless_text(node.left, *node.comparators)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self.visit(node.value)
        self._visit_unless_text(node.slice)

    def visit_Call(self, node: ast.Call) -> None:
        """Words to split, or to look for, are no sentences, and quotes are not translated."""
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called in _LOOKED_FOR:
            self._visit_unless_text(node.func.value if isinstance(node.func, ast.Attribute) else node.func)
            self._visit_unless_text(*node.args[:1])
            self.generic_visit(ast.Tuple(node.args[1:]))
        elif called not in _QUOTES:
            self.generic_visit(node)

    def _visit_unless_text(self, *nodes: ast.expr) -> None:
        for each in nodes:
            if not isinstance(each, ast.Constant):
                self.visit(each)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str) and node.value.strip():
            self.texts.append(node.value.strip())

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        self.texts.append("".join(map(self._piece, node.values)).strip())

    def _piece(self, node: ast.expr) -> str:
        if isinstance(node, ast.Constant):
            return str(node.value)
        assert isinstance(node, ast.FormattedValue)
        value = node.value
        if isinstance(value, ast.Name) and value.id == "UNDECIDED":  # a clause of its own, or nothing
            return ""
        if isinstance(value, ast.Name) and value.id in self.choices:
            return self.choices[value.id]
        if choice := _choice(value):
            return choice
        self.visit(value)
        return "'{}'" if node.conversion == ord("r") else "{}"


def _choice(node: ast.expr) -> str:
    """`"a" if x else "b"` as {a|b}; empty for anything else."""
    if isinstance(node, ast.IfExp):
        both = [each.value for each in (node.body, node.orelse) if isinstance(each, ast.Constant)]
        if len(both) == 2:
            return "{" + "|".join(map(str, both)) + "}"
    return ""


def _of_playbooks() -> Iterator[Sentence]:
    for path in sorted((ROOT / "playbooks").rglob("*.yaml")):
        where = str(path.relative_to(ROOT))
        content = yaml.safe_load(path.read_text())
        if path.parent.name == "exams":
            yield where, content["title"]
            continue
        for entry in content.values() if isinstance(content, dict) else ():
            if not entry.get("zh"):
                yield where, entry["title"]
            for key in ("causes", "unseen", "versions"):
                told = entry.get(key) or ()
                yield from ((where, each) for each in ([told] if isinstance(told, str) else told))
            for command in (*_texts(entry.get("remedy")), *_texts(entry.get("commands"))):
                found = _COMMENT.fullmatch(command)
                if found and not _PROGRAM.search(found[1]):
                    yield where, re.sub(r"\{\w+(\.\.\.)?\}", "{}", found[1])


def _texts(value: str | list[str] | None) -> list[str]:
    return [value] if isinstance(value, str) else value or []


def sample(template: str) -> Iterator[str]:
    """Sentences of a template, with something in its holes: one for each first and last choice of words."""
    numbers = iter(range(2, 99))
    filled = re.sub(r"\{\}", lambda _: str(next(numbers)), template)
    yield re.sub(r"\{([^{}]*)\|[^{}]*\}", r"\1", filled)
    yield re.sub(r"\{[^{}]*\|([^{}]*)\}", r"\1", filled)


def words(template: str) -> list[str]:
    """Its English words outside of the holes."""
    return re.findall(r"[A-Za-z][A-Za-z'-]*", re.sub(r"\{[^{}]*\}", " ", template))


def untranslated() -> list[Sentence]:
    """Those of which nothing, or not all, is said in Chinese, and that are not a part of one that is."""
    from doctor.text.catalogue import HOLE, read_catalogue
    from doctor.text.speech import CATALOGUE, translated

    known = "\n".join(HOLE.sub("\0", each) for each in read_catalogue(CATALOGUE)).lower()

    def is_said(template: str) -> bool:
        said = (translated(" ".join(one.split())) for one in sample(template))
        return any(each and not _LEFT.search(_KEPT.sub("", each)) for each in said) or is_a_part(template)

    def is_a_part(template: str) -> bool:
        fixed = HOLE.split(_ENDS.sub("", template.lower()))[::2]
        return re.search("[^\n]*?".join(map(re.escape, fixed)), known) is not None

    return [(where, each) for where, each in sentences() if not is_said(each)]
