"""Which paths of interpreters may be in a suggested command."""

from doctor.text.interpreter import PLAIN, to_type
from tests.support.cases import cases


@cases
def test_an_interpreter(path: str) -> None:
    assert to_type(path) == path


@cases
def test_anything_else_is_the_plain_one(path: str) -> None:
    assert to_type(path) == PLAIN
