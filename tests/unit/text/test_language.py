"""Which locales get Chinese messages."""

from __future__ import annotations

import pytest

from doctor.text.language import Language, language


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_TW"}, "zh"),
        ({"LC_MESSAGES": "zh_CN.UTF-8", "LANG": "en_US.UTF-8"}, "zh"),
        ({"LC_MESSAGES": "en_US.UTF-8", "LANG": "zh_CN.UTF-8"}, "en"),
        ({"LC_ALL": "C.UTF-8", "LC_MESSAGES": "zh_CN.UTF-8"}, "en"),
        ({"LC_ALL": "", "LC_MESSAGES": "", "LANG": "zh_CN"}, "zh"),  # an empty one counts as unset
        ({"LC_CTYPE": "zh_CN.UTF-8", "LANG": "de_DE.UTF-8"}, "en"),
    ],
)
def test_the_variables_of_posix_decide(variables: dict[str, str], expected: str) -> None:
    assert language(variables, "utf-8") == expected


@pytest.mark.parametrize(
    ("encoding", "expected"),
    [("utf-8", "zh"), ("gbk", "zh"), (None, "zh"), ("ascii", "en"), ("latin-1", "en"), ("no-such", "en")],
)
def test_a_stream_that_cannot_write_chinese_gets_english(encoding: str | None, expected: str) -> None:
    assert language({"LANG": "zh_CN"}, encoding) is Language(expected)
