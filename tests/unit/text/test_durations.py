"""A number of seconds in words."""

from doctor.text.durations import duration
from tests.support.cases import cases


@cases
def test_durations(seconds: float, words: str) -> None:
    assert duration(seconds) == words
