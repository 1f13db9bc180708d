"""What the command line refuses, in Chinese: no English is left, whoever wrote the sentence."""

import re
from pathlib import Path

import pytest

from doctor import cli
from doctor.text.language import Language
from doctor.text.speech import speaking
from tests.support.cases import cases

_NAMES = re.compile(r"'[^']*'|`[^`]*`|--?[a-z][\w-]*|/\S+|doctor [a-z -]+|\[[A-Z]+\]|\w+-\w+")
_TWO_WORDS = re.compile(r"[A-Za-z]+ [a-z]+")


@cases
def test_a_refusal_is_in_chinese(line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {"no": tmp_path / "no", "text": tmp_path / "text", "empty": tmp_path / "empty"}
    files["text"].write_text("hello\n")
    files["empty"].write_text("{}")
    words = [word.strip("'").format(**files) for word in line.split()]
    language = [] if "--lang" in words else ["--lang", "zh"]
    with speaking(Language.ZH), pytest.MonkeyPatch.context() as patched:
        patched.setenv("LC_ALL", "zh_CN.UTF-8")
        assert cli.run([*words[:1], *words[1:], *language]) == 2
    said = capsys.readouterr().err
    assert re.search("[\u4e00-\u9fff]", said)
    assert not _TWO_WORDS.search(_NAMES.sub("", said)), said
