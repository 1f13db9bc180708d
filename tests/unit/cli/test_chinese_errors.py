"""What the command line refuses, in Chinese: no English is left, whoever wrote the sentence."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from doctor import cli
from doctor.text.language import Language
from doctor.text.speech import speaking

_NAMES = re.compile(r"'[^']*'|`[^`]*`|--?[a-z][\w-]*|/\S+|doctor [a-z -]+|\[[A-Z]+\]|\w+-\w+")
_TWO_WORDS = re.compile(r"[A-Za-z]+ [a-z]+")
REFUSED = (
    *("chek", "man", "ranktable foo", "list nosuch", "list symptoms more", "demo nosuch"),
    *("check --nosuch", "check --jsn", "check --json", "check --local --sudo=1", "demo --lang fr"),
    *("check node1 --port abc", "check node1 --port 99999", "check node1 --color purple"),
    *("check 'node[1-'", "check -F {no}", "check node1 --launch {no}", "check node1 --checks {no}"),
    *("check node1 --plan tp=x", "check node1 --plan foo=1", "check node1 --only nosuch"),
    *("check --replay {no}", "check --replay {text}", "hang --replay {empty}", "slow --replay {text}"),
    *("check --replay {empty} --port 22", "smoke node1 --steps 0", "preflight --print foo", "run node1"),
    *("check --local node1", "logs --since foo", "explain nosuchthing", "ranktable check", "check -N 4"),
)


@pytest.mark.parametrize("line", REFUSED)
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
