"""The text that a person types or pastes leads to the right symptom, whichever part of a message it is."""

from functools import cache
from pathlib import Path

import pytest

from doctor.cli.explain import words
from doctor.cli.explain.mentions import mentioned
from doctor.cli.explain.page import TextPage
from doctor.cli.explain.words import explain_words
from doctor.judge.registry import check_ids
from doctor.text.language import Language
from doctor.text.speech import speaking
from tests.support.cases import cases
from tests.support.each import each
from tests.support.fault_logs import matcher
from tests.support.paths import ROOT

FRAGMENTS = [
    tuple(line.split(None, 1))
    for line in (ROOT / "tests/unit/logs/fragments.txt").read_text().splitlines()
    if not line.startswith("#")
]
NEAR_ONLY = {"device id: 9"}
"""Too short to be a message, and listed among similar ones."""


@pytest.fixture(autouse=True)
def _ids_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "check_ids", _IDS)


_IDS = cache(check_ids)


def explained(text: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code = explain_words(text, matcher, TextPage(colours="never"))
    return code, capsys.readouterr().out


@pytest.mark.slow
@each("fragment", FRAGMENTS)
def test_a_part_of_a_message(fragment: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    id, text = fragment
    code, said = explained(text, capsys)
    assert id in said.split("Read on")[0]
    assert code == (3 if text in NEAR_ONLY else 0)


@cases
def test_what_people_type(text: str, id: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = explained(text, capsys)
    assert (code, id in said) == (0, True), said


@pytest.mark.slow
@cases
def test_a_word_of_a_launch_guide(id: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The answer is the page of the check, or names it."""
    for word in words.split():
        code, said = explained(word, capsys)
        assert (code, id in said) == (0, True), (word, said)


@cases
def test_a_command_of_a_launch_guide(id: str, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = explained(command, capsys)
    assert (code, id in said) == (0, True), said


def test_one_check_is_shown_with_what_it_does_and_messages_about_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert explained("NCCL_ALGO", capsys)[1].startswith(
        "launch-inconsistent compares the ranks' NCCL_ALGO.\n\nlaunch-inconsistent: a fault"
    )
    said = explained("MASTER_ADDR", capsys)[1]
    assert said.startswith("2 checks mention MASTER_ADDR; doctor explain ID shows one:\n")
    assert "Messages in logs about it:\n  torch-env-missing" in said


def test_messages_stand_beside_several_checks_with_the_word_in_their_name(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, said = explained("loss", capsys)
    checks, messages = said.split("\nMessages in logs about it:\n")
    assert (code, "smoke-loss-stall" in checks) == (0, True)
    ids = [line.split()[0] for line in messages.splitlines()]
    assert ids[:3] == ["loss-nan", "loss-diverging", "loss-stalled"]


def test_a_check_with_the_word_in_its_name_is_alone_if_no_other_has_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert "Messages in logs" not in explained("hang", capsys)[1]


@pytest.mark.parametrize("lang", Language)
@pytest.mark.parametrize("word", ["hook", "loss-stalled", "smoke-mask-divergence"])
def test_the_hook_is_shown_as_it_is_typed(
    word: str, lang: Language, capsys: pytest.CaptureFixture[str]
) -> None:
    with speaking(lang):
        lines = explained(word, capsys)[1].splitlines()
    assert any(line.strip() == "from doctor.smoke.hook import batch" for line in lines)
    assert any(line.strip().startswith("batch(tokens, mask, labels, tensor_parallel=2)") for line in lines)


def test_a_word_that_no_check_is_about_is_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    for word in ("SOME_OTHER_VARIABLE", "setenforce 0", "AWS_SECRET_ACCESS_KEY", "nc -zv node2 29500"):
        assert explained(word, capsys)[0] == 3


def test_few_letters_are_no_part_of_a_message(capsys: pytest.CaptureFixture[str]) -> None:
    for text in ("it is", "a … b", "my cat sleeps on the keyboard"):
        assert explained(text, capsys)[0] == 3


def test_several_codes_are_all_told(capsys: pytest.CaptureFixture[str]) -> None:
    code, said = explained("EI0006, 507018", capsys)
    assert code == 0
    assert "hccl-ei0006: " in said
    assert "acl-507018: " in said


def test_numbers_behind_a_word_do_not_hide_what_it_is() -> None:
    folders: list[Path] = []
    assert mentioned("NCCL_ALGO 3 7", folders) == mentioned("NCCL_ALGO", folders) is not None
