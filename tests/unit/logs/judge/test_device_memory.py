"""The numbers in an allocator's message say whether the process itself holds the memory."""

from doctor.logs.judge.blame import held_by_others
from tests.support.cases import cases


@cases
def test_who_holds_it(text: str, others: bool) -> None:
    assert held_by_others(text) == others
