"""The page of the node trials counts what accused a sound host, and apart from it what could not be read."""

from tests.trials.node.page import page
from tests.trials.node.situation import Group, Situation
from tests.trials.outcome import Outcome


def ran(number: int, code: int, *said: str) -> Outcome:
    way = ("local", "ssh")[number % 2]
    return Outcome("idle", number, way, code == 0, True, code != 1, None, 1.0 + number, code, said)


def test_accusations_and_what_could_not_be_read_are_counted_apart() -> None:
    group = Group("Idle hosts", (Situation("idle"), Situation("never made")))
    said = page(
        [ran(0, 0), ran(1, 0, "WARN kernel-log a link went down"), ran(2, 1, "FAIL x"), ran(3, 3)], [group]
    )
    assert "**4 runs: 1 accused a sound host (exit code 1), 1 ended with another code than 0 or 1.**" in said
    row = next(line for line in said.splitlines() if line.startswith("| idle "))
    assert [cell.strip() for cell in row.split("|")[1:-1]] == [
        "idle",
        "4",
        "0: 2, 1: 1, 3: 1",
        "2.5 s",
        "4.0 s",
        "kernel-log: 1",
    ]
    assert "never made" not in said
