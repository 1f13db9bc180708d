"""Chains of who waits for whom, numbers of operations, and the details that a time-out states."""

import pytest

from doctor.logs.judge import conclude
from doctor.logs.judge.clocks import step_of
from doctor.logs.judge.kinds import SuspectKind, exit_of, kind_of, signal_of
from doctor.logs.model import Form, LogLine, Role, Sighting
from doctor.model import UNDECIDED, Confidence
from tests.support.cases import cases
from tests.support.logs import endings as e
from tests.support.logs.written import Entry, File, logs, symptom


@cases
def test_the_step_that_a_line_states(text: str, step: int | None) -> None:
    assert step_of(text) == step


def seen(text: str, form: Form, role: Role = Role.CONFIRMS, **taken: str) -> Sighting:
    line = LogLine("a.log", 1, text, form)
    return Sighting(symptom("x", role), line, line, 1, taken)


@cases
def test_how_a_process_ended(text: str, form: Form, signal: int | None, kind: SuspectKind) -> None:
    sighting = seen(text, form)
    assert signal_of(sighting) == signal
    assert kind_of(sighting) is kind


def test_nonsense_is_no_exit_code() -> None:
    assert exit_of(seen("x", Form.ELASTIC, exitcode="9" * 50)) is None
    assert signal_of(seen("x", Form.MPI, signal="9999999")) is None


def waits_for(number: int, *peers: int) -> File:
    text = f"wait socket establish timeout, role[1] rank[{number}] timeout[120 s]"
    lines = [Entry(120, text, e.SOCKET, Form.PLOG, taken={"peer_rank": str(peer)}) for peer in peers]
    return e.rank(number, *lines, steps=0)


def test_the_last_that_others_wait_for_is_guilty() -> None:
    found = conclude(logs([waits_for(0, 1), waits_for(1, 3), waits_for(2, 3), e.rank(3)]))
    first = found.charges[0]
    assert [party.rank for party in first.who] == [3]
    assert first.confidence is Confidence.STRONG
    assert "no such line of its own is in these logs" in first.how


def test_two_that_wait_for_each_other_are_a_pair() -> None:
    found = conclude(logs([waits_for(0, 1), waits_for(1, 0)]))
    assert {party.rank for party in found.charges[0].who} == {0, 1}
    assert found.charges[0].says.endswith(UNDECIDED)
    assert found.charges[0].confidence is Confidence.SUSPECT


def test_the_ends_of_two_chains_are_not_said_to_wait_for_each_other() -> None:
    first = conclude(logs([waits_for(0, 1), waits_for(2, 3)])).charges[0]
    assert [party.rank for party in first.who] == [1, 3]
    assert "1, 3 are the last that others wait for" in first.says
    assert UNDECIDED in first.says


def test_who_leads_from_one_cycle_to_another_is_in_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(e.HOSTS, 4, "node3")
    files = [waits_for(0, 1), waits_for(1, 0, 2), waits_for(2, 3), waits_for(3, 4), waits_for(4, 3)]
    first = conclude(logs(files)).charges[0]
    assert {party.rank for party in first.who} == {0, 1, 3, 4}
    assert first.says.startswith("ranks 0-1 on node1, and ranks 3-4 on node[2-3] waited for each other")


def enqueued(number: int, last: int, done: int = 41, waits: bool = True, group: str = "PG 0") -> File:
    text = f"[{group} Rank {number}] last enqueued work: {last}, last completed work: {done}"
    timed_out = e.watchdog(640, done + 1)(number) if waits else ()
    return e.rank(number, *timed_out, Entry(641, text, e.ENQUEUED))


def test_smallest_is_behind() -> None:
    found = conclude(logs(enqueued(n, 41 if n == 1 else 45 + n, waits=n != 1) for n in range(4)))
    assert found.charges[0].says.startswith(
        "rank 1 on node1 was behind: operation 41 was the last that it enqueued, of 42"
    )
    assert [party.rank for party in found.charges[0].who] == [1]


@cases
def test_who_came_to_what_the_others_wait_in_is_not_behind(counts: list[tuple[int, int, int, str]]) -> None:
    """Rows of a rank: what it enqueued and completed, whether it waits, its group."""
    files = [
        enqueued(rank, last, done, bool(waits), f"PG ID 3 PG GUID {group}")
        for rank, (last, done, waits, group) in enumerate(counts)
    ]
    assert not [charge.says for charge in conclude(logs(files)).charges if "behind" in charge.says]


def test_one_of_many_that_went_on_alone_leaves_nobody_behind() -> None:
    found = conclude(logs([enqueued(3, 60), *(enqueued(n, 41, waits=False) for n in range(3))]))
    assert "behind" not in found.charges[0].says


def test_equal_numbers_name_nobody() -> None:
    assert conclude(logs(enqueued(n, 42) for n in range(4))).charges[0].who == ()


def test_mismatch() -> None:
    files = [e.rank(n, *e.watchdog(640, 8, "BROADCAST" if n == 3 else "ALLREDUCE")(n)) for n in range(4)]
    found = conclude(logs(files))
    assert "ranks 0-2 on node[1-2] in ALLREDUCE, rank 3 on node2 in BROADCAST" in found.charges[0].says
    assert found.charges[0].confidence is Confidence.SUSPECT
