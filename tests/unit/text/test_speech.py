"""Sentences are recognised by their templates and said in Chinese; the catalogue is sound.

A sentence of few words without a translation stays English.
"""

import re
from collections import defaultdict
from collections.abc import Iterator

import pytest

from doctor.hang import report as hang
from doctor.logs import report as logs
from doctor.report.page import headline
from doctor.report.page.card import CardKind
from doctor.slow import report as slow
from doctor.text import speech
from doctor.text.catalogue import HOLE, Template, read_catalogue, read_po
from doctor.text.language import Language
from doctor.text.speech import CATALOGUE, speaking, t, t_list, translated
from tests.support.cases import cases, from_cases
from tests.support.sentences import untranslated, words
from tests.support.sources import sources

WRONG = from_cases(__file__, "WRONG", dict[str, str])
"""Words that are not used, and what is used in their place."""
ENTRIES = read_catalogue(CATALOGUE)


@cases
def test_a_sentence_is_recognised(english: str, chinese: str) -> None:
    assert translated(english) == chinese


@cases
def test_names_that_can_be_typed_stay(english: str, chinese: str) -> None:
    assert translated(english) == chinese


@cases
def test_anything_else_stays_as_it_is(quoted: str) -> None:
    with speaking(Language.ZH):
        assert t(quoted) == quoted


@pytest.mark.parametrize("words", [hang.WORDS, slow.WORDS, logs._WORDS, headline.VERDICTS])
def test_every_verdict_of_a_page_is_translated(words: dict[object, tuple[str, CardKind]]) -> None:
    assert all(translated(word) for word, _ in words.values())


@cases
def test_every_other_word_of_a_page_is_translated(word: str) -> None:
    assert translated(word)


def test_english_is_not_touched() -> None:
    assert t("its link is down") == "its link is down"
    assert t_list("its link is down, 3 faults") == "its link is down, 3 faults"


def test_blanks_around_a_sentence_stay() -> None:
    with speaking(Language.ZH):
        assert t("  3 faults ") == "  3 个故障 "


def test_a_hole_for_a_number_takes_nothing_else() -> None:
    template = Template("{n} host{s|}", "{n} 台主机")
    assert template.pattern.fullmatch("1,024 hosts")
    assert template.pattern.fullmatch("1 host")
    assert not template.pattern.fullmatch("all hosts")


def test_a_catalogue_is_gettexts() -> None:
    text = 'msgid ""\nmsgstr "Language: zh_CN\\n"\n\n# said\nmsgid "a "\n"\\"b\\""\nmsgstr "甲"\n'
    assert list(read_po(text)) == [("", "Language: zh_CN\n"), ('a "b"', "甲")]


@pytest.mark.parametrize("path", sorted(CATALOGUE.glob("*.po")), ids=lambda path: path.name)
def test_no_entry_is_broken(path: object) -> None:
    entries = [pair for pair in read_po(path.read_text()) if pair[0]]  # type: ignore[attr-defined]
    wrong = []
    for english, chinese in entries:
        known = {name for name in HOLE.findall(english) if "|" not in name}
        if set(HOLE.findall(chinese)) != known:
            wrong.append(f"{english}: holes")
        Template(english, chinese).pattern  # noqa: B018  # it compiles
        wrong += [
            f"{english}: {word} is not used: {better}" for word, better in WRONG.items() if word in chinese
        ]
    assert not wrong


def test_no_sentence_has_two_translations() -> None:
    """Neither in one file nor in two: only one of them would be used, and nobody sees which."""
    places = defaultdict(list)
    for path in CATALOGUE.glob("*.po"):
        for english, _ in read_po(path.read_text(encoding="utf-8")):
            if english:
                places[english].append(path.name)
    assert not {english: names for english, names in places.items() if len(names) > 1}


@pytest.fixture
def catalogue_alone() -> Iterator[None]:
    """Titles that other tests loaded come before the catalogue; afterwards they are known again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(speech, "_learnt", {})
        _forget()
        yield
    _forget()


def _forget() -> None:
    speech._index.cache_clear()
    speech._said.cache_clear()


@pytest.mark.usefixtures("catalogue_alone")
def test_no_sentence_of_the_catalogue_is_taken_for_another() -> None:
    """A sentence without holes is found whole; one with holes fills all of them."""
    for english, chinese in ENTRIES.items():
        if "{" not in english:
            assert re.sub(" ", "", translated(english) or "") == re.sub(" ", "", chinese)


FEWEST = 6
"""A sentence with fewer words may be a name or a part of another one."""


def test_every_sentence_has_a_template() -> None:
    """Whoever changes an English sentence changes its template in doctor/text/zh too."""
    with speaking(Language.ZH):
        left = [f"{where}: {each}" for where, each in untranslated() if len(words(each)) >= FEWEST]
    assert not left, "these need a Chinese template in doctor/text/zh:\n" + "\n".join(left)


def test_every_template_has_a_source() -> None:
    """A template whose sentence is no longer in the code is deleted with it."""
    left = [english for english in ENTRIES if not sources().have(english)]
    assert not left, "nothing says these any more; delete them from doctor/text/zh:\n" + "\n".join(left)


@pytest.mark.parametrize("changed", ["The job moves to another planet", "{who} eats the memory of {host}"])
def test_a_sentence_that_nothing_says_has_no_source(changed: str) -> None:
    assert sources().have("The job moves")
    assert not sources().have(changed)
