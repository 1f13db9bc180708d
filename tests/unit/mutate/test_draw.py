"""Which changes of a source are drawn."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.mutate.draw import drawn, sites_of
from tests.support.cases import cases
from tests.support.paths import ROOT


def changed(source: str) -> list[set[str]]:
    """For each site, the sources that its changes make."""
    text = source.encode()
    return [{change.applied(text).decode() for change in site} for site in sites_of("a.py", text)]


@cases
def test_each_site_has_its_changes(source: str, sites: list[set[str]]) -> None:
    assert changed(source) == sites


@cases
def test_what_proves_nothing_is_left_out(source: str) -> None:
    assert changed(source) == []


def test_a_change_knows_its_function_and_its_lines() -> None:
    source = b"class A:\n    def f(self):\n        def g(): return 0\n        return 1\n    limit = 2\n"
    (inner,), (outer,), (field,) = sites_of("a.py", source)
    assert (inner.scope, inner.function, inner.line) == ("A.f.g", "g", 3)
    assert (outer.scope, outer.function) == ("A.f", "f")
    assert (field.scope, field.function) == ("A", "")
    assert (outer.before, outer.after) == ("return 1", "return 2")


def test_what_is_drawn_stays_if_a_source_changes_elsewhere(tmp_path: Path) -> None:
    source = "".join(f"def f{number}(a, b):\n    return a < b or a == {number}\n" for number in range(50))
    (tmp_path / "a.py").write_text(source)
    earlier = {change.key for change in drawn(tmp_path, ["a.py"], 1, 20)}
    (tmp_path / "a.py").write_text("import os\n\nLIMIT = 5\n" + source)
    assert len(earlier & {change.key for change in drawn(tmp_path, ["a.py"], 1, 20)}) >= 19
    assert len(earlier & {change.key for change in drawn(tmp_path, ["a.py"], 2, 20)}) < 19


def test_every_change_of_our_own_sources_is_another_program() -> None:
    for path in ("doctor/job/launch/ranks.py", "doctor/waits.py", "checks/memory.py"):
        source = (ROOT / path).read_bytes()
        changes = [change for site in sites_of(path, source) for change in site]
        sound = ast.dump(ast.parse(source))
        assert [each for each in changes if ast.dump(ast.parse(each.applied(source))) == sound] == []
        assert len({change.key for change in changes}) == len(changes)
