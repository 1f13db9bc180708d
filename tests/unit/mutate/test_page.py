"""The page of the changes that no test notices, and the record behind it."""

from pathlib import Path

from tests.mutate import record
from tests.mutate.ask import Answer, stages
from tests.mutate.change import Change, made
from tests.mutate.draw import sites_of
from tests.mutate.page import MISSING, PAGE, page, summary

SOURCE = b"def f(a, b):\n    return a | 1 < b\n"
NOTICED = Answer("own", "tests/unit/test_a.py::test", 1.0)
ALIVE = Answer("", "", 2.0)


def changes(source: bytes = SOURCE) -> list[Change]:
    return [change for site in sites_of("doctor/a.py", source) for change in site]


def test_those_alive_are_in_the_table() -> None:
    number, comparison = sorted(changes(), key=lambda change: change.text)
    text = page({number: ALIVE, comparison: NOTICED}, 7, "")
    row = "| `doctor/a.py` | `f` | `return a \\| 1 < b` → `return a \\| 2 < b` |"
    assert f"{row} {MISSING} |" in text
    assert "Seed 7. 2 changes: 1 noticed (50.0 %): 1 by own." in text
    assert text.count("doctor/a.py") == 1


def test_a_word_stays() -> None:
    answers = dict.fromkeys(changes(), ALIVE)
    written = page(answers, 1, "").replace(MISSING, "any bit will do", 1)
    assert page(answers, 1, written) == written


def test_a_long_line_shows_the_change() -> None:
    (change,) = changes(b"x = '%s' == a\n" % (b"long " * 40))
    assert "== a` → `…" in page({change: ALIVE}, 1, "")


def test_nothing_asked() -> None:
    assert summary({}) == "0 changes: 0 noticed (0.0 %): ."


def test_the_last_answer_counts(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    assert record.load(path) == {}
    change, other = changes()
    for answer in (ALIVE, NOTICED):
        record.append(path, change, answer)
    record.append(path, other, ALIVE)
    assert record.load(path) == {change.key: NOTICED, other.key: ALIVE}


def test_the_tree_is_as_before_when_a_change_was_asked(tmp_path: Path) -> None:
    path = tmp_path / "doctor/a.py"
    path.parent.mkdir()
    path.write_bytes(SOURCE)
    before = path.stat().st_mtime_ns
    with made(changes()[0], tmp_path, 5):
        assert path.read_bytes() == changes()[0].applied(SOURCE) != SOURCE
        assert path.stat().st_mtime == 5
    assert (path.read_bytes(), path.stat().st_mtime_ns) == (SOURCE, before)


def test_the_tests_that_call_it_are_asked_first() -> None:
    (change, *_) = [each for site in sites_of("doctor/waits.py", b"x = 1\n") for each in site]
    near, far = "tests/unit/hang/test_report.py", "tests/unit/text/test_redact.py"
    first, second, *later = stages(change, [far, near])
    assert (first.name, first.args[2:]) == ("own", (near,))
    assert (second.name, second.args[2:]) == ("others", (far,))
    assert [stage.name for stage in later if stage.name != "programs"] == ["slow"]


def test_each_change_of_the_page_has_a_word() -> None:
    assert MISSING not in PAGE.read_text()
