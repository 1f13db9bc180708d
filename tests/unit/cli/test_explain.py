"""What `doctor explain` prints about each check."""

import re
from pathlib import Path

import pytest
from rich.cells import cell_len

from doctor.cli.catalogue import print_list
from doctor.cli.explain.page import TextPage, print_page
from doctor.cli.explain.symptom_page import page_of
from doctor.cli.explain.words import explain_words
from doctor.cli.pages import page, translation
from doctor.errors import InputErrors, UsageError
from doctor.judge.registry import find_checks
from doctor.logs.model import Role, Symptom
from doctor.logs.symptoms.match import Matcher
from doctor.text.language import Language
from doctor.text.speech import speaking
from tests.support.cases import from_cases
from tests.support.each import each

CHECKS = find_checks().checks
IDS = [check.id for check in CHECKS]
SOURCE = from_cases(__file__, "SOURCE", str)


def shown(
    id: str,
    capsys: pytest.CaptureFixture[str],
    *folders: Path,
    lang: Language = Language.EN,
    colours: str = "auto",
) -> str:
    with speaking(lang):
        assert print_page(id, TextPage(folders, colours)) == 0
    return capsys.readouterr().out


@each("id", IDS)
def test_explain(id: str, capsys: pytest.CaptureFixture[str]) -> None:
    page = shown(id, capsys)
    assert page.startswith(f"{id}: ")
    assert "\nWhy it matters\n  " in page
    assert "\nWhat to do\n  " in page
    assert not re.search(r"\{\w+(\.\.\.)?\}", page)


@pytest.mark.slow
@each("id", [check.id for check in CHECKS if translation(check)])
def test_explain_in_chinese(
    id: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    head, _, text = shown(id, capsys, lang=Language.ZH).partition("\n\n")
    assert head.startswith(f"{id}：")
    assert "untranslated" not in head
    assert "\n影响\n  " in text
    assert "\n处理方法\n  " in text
    lines = [line for line in text.splitlines() if not line.isascii() and "  # " not in line]
    assert all(cell_len(line) <= 60 for line in lines)
    assert not [line for line in lines if line.startswith(("，", "。", "、", "；", "）"))]


def test_a_remedy_in_chinese(capsys: pytest.CaptureFixture[str]) -> None:
    said = shown("stop-swap", capsys, lang=Language.ZH)
    assert said.startswith("stop-swap：处理方法。\n收回被换出的内存\n  ps -eo")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "door.py").write_text(SOURCE)
    return tmp_path


OLD = "door-open:\n  page: 机柜门开着。\n  english: {}\n"


@pytest.mark.parametrize("chinese", [None, OLD.format('"01234567"'), OLD.format("untranslated")])
def test_a_check_without_a_chinese_page_of_now_is_explained_in_english(
    chinese: str | None, site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if chinese:
        (site / "zh").mkdir()
        (site / "zh/door.yaml").write_text(chinese)
    first, second, _, subject, *_ = shown("door-open", capsys, site, lang=Language.ZH).splitlines()
    assert first.startswith("door-open：")
    assert second == "尚无中文译文，以下为英文。"
    assert subject == "The door of the rack is open."
    assert "untranslated" not in shown("door-open", capsys, site)


def test_a_check_of_others_brings_its_chinese_page(site: Path) -> None:
    (site / "zh").mkdir()
    (site / "zh/door.yaml").write_text("door-open:\n  page: |\n    机柜门\n    开着。\n\n    影响：吵。\n")
    (own,) = [check for check in find_checks((site,)).checks if check.id == "door-open"]
    with speaking(Language.ZH):
        assert page(own) == "机柜门开着。\n\n影响：吵。"


def test_a_mistake_in_a_chinese_page_is_shown_with_its_line(site: Path) -> None:
    (site / "zh").mkdir()
    (site / "zh/door.yaml").write_text("door-open:\n  seite: 机柜门开着。\n")
    with speaking(Language.ZH), pytest.raises(InputErrors, match=r"zh/door.yaml:\d"):
        print_page("door-open", TextPage((site,)))


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_a_page_is_as_wide_as_the_terminal(
    columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = shown("shm-small", capsys).splitlines()
    typed = re.compile(r"--shm-size|sudo mount|/etc/fstab")
    widest = max(len(line) for line in lines if not typed.search(line))
    assert min(columns, 100) - 15 < widest <= min(columns, 100)
    assert "  sudo mount -o remount,size=SIZE /dev/shm" in lines, "a command stays whole"


def test_a_numbered_cause_hangs_behind_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    causes = ("somebody pushed it " * 4, "it slipped")
    symptom = Symptom("x-y", "it fell", "x", Role.ROOT, (), causes=causes)
    said = "".join(page_of(symptom, (), TextPage()))
    assert "\n  1. somebody pushed" in said
    assert re.search("\n     [a-z]", said)
    assert "\n  2. it slipped\n" in said


def test_who_types_an_unknown_name_is_told_where_the_names_are() -> None:
    with pytest.raises(UsageError) as told:
        explain_words("xyzzy", lambda: Matcher(()), TextPage())
    assert "`doctor list symptoms`" in told.value.hint


def test_without_a_terminal_a_page_has_80_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert 65 < max(map(len, shown("swap-active", capsys).splitlines())) <= 80


def test_a_page_by_a_part_of_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown("firewall", capsys).startswith("firewall-blocks: a fault; ")
    assert shown("grow-arp", capsys).startswith("grow-arp-table: a remedy.\n")
    said = shown("shm", capsys)
    assert said.startswith("2 have 'shm' in their name:\n")
    assert re.findall(r"^  (\S+)  +fail  ", said, re.MULTILINE) == ["shm-small", "shm-full"]


def test_text_of_others_draws_nothing(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (site / "door.py").write_text(SOURCE.replace("it is loud", "it is \\x1b[2Jloud"))
    said = shown("door-open", capsys, site, colours="always")
    assert "\\x1b[2Jloud" in said
    assert "\x1b[2J" not in said
    assert "\x1b[1mWhy it matters\x1b[0m" in said


@pytest.mark.parametrize("columns", [40, 80])
def test_the_list_is_as_wide_as_the_terminal(
    columns: int, site: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    print_list(())
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= columns
    assert {id for id in IDS if any(line.split()[:1] == [id] for line in lines)} == set(IDS)
    print_list((site,))
    assert "[" + str(site) in capsys.readouterr().out.replace("\n", "").replace("  ", "")
