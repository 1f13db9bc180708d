"""What a person types or pastes leads to the symptom that is meant, whichever part of a message it is."""

from __future__ import annotations

from functools import cache

import pytest

from doctor.cli.explain import words
from doctor.cli.explain.words import explain_words
from doctor.judge.registry import check_ids
from doctor.text.language import Language
from tests.support.each import each
from tests.support.fault_logs import matcher
from tests.support.paths import ROOT

FRAGMENTS = [
    tuple(line.split(None, 1))
    for line in (ROOT / "tests/unit/logs/fragments.txt").read_text().splitlines()
    if not line.startswith("#")
]
TYPED = [
    ("connect returned Connection timed out", "nccl-connect-timeout"),
    ("Call to connect returned Connection timed out, retrying", "nccl-connect-retrying"),
    ("davinci_model : load task fail", "mindspore-wrap-load-task"),
    ("EI0006", "hccl-ei0006"),
    ("ei0006", "hccl-ei0006"),
    ("Error code EI0006", "hccl-ei0006"),
    ("Watchdog caught collective operation timeout", "torch-nccl-watchdog"),
    ("failed to connect to any network address of", "torch-connect-unreachable"),
    ("RendezvousClosedError", "torchrun-rendezvous-closed"),
    ("ret 507011", "acl-507011"),
    ("xid79", "gpu-xid-79"),
    ("XID: 79", "gpu-xid-79"),
    ("signal 9", "torchrun-killed"),
    ("exitcode -11", "torchrun-segfault"),
    ("exit 137", "torchrun-killed"),
    ("SIGSEGV", "torchrun-segfault"),
    ("EADDRINUSE", "torch-port-in-use"),
    ("NCCL error: unhandled system error", "nccl-wrapper"),
]
NEAR_ONLY = {"device id: 9"}
"""Too little to be a message, and named among what is near."""


@pytest.fixture(autouse=True)
def _ids_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "check_ids", _IDS)


_IDS = cache(check_ids)


def explained(text: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code = explain_words(text, matcher, (), Language.EN, colours="never")
    return code, capsys.readouterr().out


@each("fragment", FRAGMENTS)
def test_a_part_of_a_message(fragment: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    id, text = fragment
    code, said = explained(text, capsys)
    assert id in said.split("Read on")[0]
    assert code == (3 if text in NEAR_ONLY else 0)


@pytest.mark.parametrize(("text", "id"), TYPED)
def test_what_people_type(text: str, id: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = explained(text, capsys)
    assert (code, id in said) == (0, True), said


def test_few_letters_are_no_part_of_a_message(capsys: pytest.CaptureFixture[str]) -> None:
    for text in ("it is", "a … b", "my cat sleeps on the keyboard"):
        assert explained(text, capsys)[0] == 3


def test_several_codes_are_all_told(capsys: pytest.CaptureFixture[str]) -> None:
    code, said = explained("EI0006, 507018", capsys)
    assert code == 0
    assert "hccl-ei0006: " in said
    assert "acl-507018: " in said
