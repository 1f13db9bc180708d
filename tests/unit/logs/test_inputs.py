"""The input: files, stdin or words. Existing files come first, and a missing file is reported as missing."""

from pathlib import Path

import pytest

from doctor.errors import InputErrors, UsageError
from doctor.logs.inputs import LogInputs, given, refuse_inputs
from tests.support.cases import cases


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.log").write_text("x\n")
    (tmp_path / "two words").mkdir()
    (tmp_path / "EI0006").write_text("x\n")


def test_what_is_there_is_read() -> None:
    assert given(["train.log"]) == LogInputs(("train.log",))
    assert given(["train.log", "two words"]) == LogInputs(("train.log", "two words"))
    assert given(["EI0006"]) == LogInputs(("EI0006",)), "a path wins over a code"
    assert given(["./train.log", "-"]) == LogInputs(("./train.log", "-"))


def test_stdin() -> None:
    assert given(["-"]) == LogInputs(("-",))
    assert given([], piped=True) == LogInputs(("-",))
    with pytest.raises(UsageError, match="Nothing was given"):
        given([])
    with pytest.raises(UsageError, match="Nothing was given"):
        given([" "], piped=True)
    with pytest.raises(UsageError, match="read once"):
        given(["-", "-"])


@cases
def test_words(words: list[str]) -> None:
    assert given(words) == LogInputs(text=" ".join(words))


@cases
def test_a_name_of_no_file_says_so(word: str) -> None:
    with pytest.raises(InputErrors, match="does not exist"):
        given([word])
    with pytest.raises(InputErrors, match="does not exist"):
        given(["train.log", word])


def test_a_word_behind_files_is_a_file_that_is_lost() -> None:
    with pytest.raises(InputErrors, match="rank1: does not exist"):
        given(["train.log", "two words", "rank1"])
    assert given(["open", "of", "train.log", "failed"]).text == "open of train.log failed"


def test_other_input_is_no_log(tmp_path: Path) -> None:
    refuse_inputs(["train.log", "-", "two words"])
    (tmp_path / "hccl.json").write_text('{"server_list": [], "version": "1.0"}')
    with pytest.raises(InputErrors) as caught:
        refuse_inputs(["train.log", "hccl.json"])
    assert caught.value.message == "hccl.json is a rank table. Type: doctor ranktable check hccl.json"
    (tmp_path / "raw.log").write_bytes(b"\xff\xfe\0\x01")
    refuse_inputs(["raw.log"])


@pytest.mark.parametrize("words", [["train.log", "507018"], ["load task fail", "./train.log"]])
def test_a_file_is_not_left_out_because_of_words(words: list[str]) -> None:
    with pytest.raises(UsageError, match="cannot be explained together"):
        given(words)
