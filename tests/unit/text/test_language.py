"""Which locales get Chinese messages."""

from doctor.text.language import Language, language
from tests.support.cases import cases


@cases
def test_the_variables_of_posix_decide(variables: dict[str, str], expected: str) -> None:
    assert language(variables, "utf-8") == expected


@cases
def test_a_stream_that_cannot_write_chinese_gets_english(encoding: str | None, expected: str) -> None:
    assert language({"LANG": "zh_CN"}, encoding) is Language(expected)
