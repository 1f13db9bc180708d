"""Two ranks that know each other, the path between them, and the seals of their messages."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doctor.exam.in_job.handshake import Endpoint, Greeting, Introduction, Seal, Seals, Stranger, endpoint
from doctor.exam.in_job.wire import HEAD, FrameReader

TOKEN = hashlib.sha256(b"job").digest()
HERE = Endpoint("10.0.0.1", 21000)
TOKENS = st.binary(min_size=32, max_size=32)


def meet(head: Greeting, member: Introduction) -> tuple[Seals, Seals]:
    """All their messages to each other, without line ends; and their seals."""
    answer = head.answer(member.answer(head.opening[:-1])[:-1])
    seals = member.confirm(answer[:-1])
    assert head.seals is not None
    return head.seals, seals


def framed(seal: Seal, payload: bytes) -> bytes:
    frame = HEAD.pack(len(payload), 0, 7) + payload
    return frame + seal.of(frame)


def heard(seal: Seal, data: bytes) -> list[bytes]:
    """The payloads that are accepted as genuine, until the first that is not."""
    reader, found = FrameReader(seal), []
    reader.add(data)
    try:
        while (frame := reader.next()) is not None:
            found.append(frame[2])
    except ConnectionAbortedError:
        pass
    return found


def test_ranks_of_one_job_understand_each_other() -> None:
    head, member = meet(Greeting(TOKEN, HERE), Introduction(TOKEN, HERE))
    assert heard(member.into, framed(head.out, b"start")) == [b"start"]
    assert heard(head.into, framed(member.out, b"here")) == [b"here"]


@given(st.lists(TOKENS, min_size=2, max_size=2, unique=True))
def test_ranks_of_two_jobs_do_not(tokens: list[bytes]) -> None:
    with pytest.raises(Stranger):
        meet(Greeting(tokens[0], HERE), Introduction(tokens[1], HERE))


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_nothing_else_is_an_answer(line: bytes, other: bytes) -> None:
    head, member = Greeting(TOKEN, HERE), Introduction(TOKEN, HERE)
    with pytest.raises(Stranger):
        member.answer(line)
    member.answer(head.opening[:-1])
    with pytest.raises(Stranger):
        member.confirm(other)
    with pytest.raises(Stranger):
        head.answer(other)
    assert head.seals is None


@pytest.mark.parametrize("there", [Endpoint("10.0.0.1", 21001), Endpoint("10.0.0.2", 21000)])
def test_what_passes_on_between_two_places_satisfies_neither(there: Endpoint) -> None:
    head, member = Greeting(TOKEN, HERE), Introduction(TOKEN, there)
    answer = head.answer(member.answer(head.opening[:-1])[:-1])
    assert head.seals is None
    with pytest.raises(Stranger, match="a relay or a translated address"):
        member.confirm(answer[:-1])


@given(st.integers(0, 2), st.integers(0, 199), st.integers(1, 255))
def test_a_handshake_that_was_touched_fails(line: int, at: int, change: int) -> None:
    """An attacker in between changes one byte of a message."""

    def touched(number: int, text: bytes) -> bytes:
        if number != line:
            return text
        changed = bytearray(text)
        changed[at % len(text)] ^= change
        return bytes(changed)

    head, member = Greeting(TOKEN, HERE), Introduction(TOKEN, HERE)

    def conversation() -> None:
        said = member.answer(touched(0, head.opening[:-1]))[:-1]
        member.confirm(touched(2, head.answer(touched(1, said))[:-1]))

    with pytest.raises(Stranger):
        conversation()


def test_an_answer_of_another_conversation_is_worth_nothing() -> None:
    """Both sides draw a random number for each conversation, and a proof of one side does not prove the
    other.
    """
    head, member = Greeting(TOKEN, HERE), Introduction(TOKEN, HERE)
    said = member.answer(head.opening[:-1])[:-1]
    head.answer(said)
    with pytest.raises(Stranger):
        Greeting(TOKEN, HERE).answer(said)
    mirrored = b" ".join(said.split(b" ")[1:])
    with pytest.raises(Stranger):
        member.confirm(mirrored)


@st.composite
def tampered(draw: st.DrawFn) -> tuple[list[bytes], list[bytes], list[bytes]]:
    """Payloads, their frames as sent, and their frames after an attacker changed them on the way."""
    payloads = draw(st.lists(st.binary(max_size=40), min_size=1, max_size=6))
    key = Seal(b"k" * 32, b"head")
    sent = [framed(key, payload) for payload in payloads]
    come = list(sent)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(come) - 1))
        what = draw(st.sampled_from(["drop", "repeat", "swap", "cut", "change", "insert", "forge"]))
        if what == "drop" and len(come) > 1:
            del come[at]
        elif what == "repeat":
            come.insert(draw(st.integers(0, len(come))), come[at])
        elif what == "swap":
            to = draw(st.integers(0, len(come) - 1))
            come[at], come[to] = come[to], come[at]
        elif what == "cut":
            come[at] = come[at][: draw(st.integers(0, len(come[at]) - 1))] or b"\0"
        elif what == "change":
            byte = draw(st.integers(0, len(come[at]) - 1))
            come[at] = (
                come[at][:byte] + bytes([come[at][byte] ^ draw(st.integers(1, 255))]) + come[at][byte + 1 :]
            )
        elif what == "insert":
            come.insert(at, draw(st.binary(min_size=1, max_size=60)))
        else:
            come.insert(at, framed(Seal(b"x" * 32, b"head", at), b"forged"))
    return payloads, sent, come


@given(tampered())
def test_only_what_was_said_is_heard_in_its_order(case: tuple[list[bytes], list[bytes], list[bytes]]) -> None:
    """Injected, replayed, reordered, cut or changed: the accepted part is the beginning of what was sent."""
    payloads, sent, come = case
    found = heard(Seal(b"k" * 32, b"head"), b"".join(come))
    assert found == payloads[: len(found)]
    whole = len(b"".join(sent[: len(found)]))
    assert b"".join(come)[:whole] == b"".join(sent)[:whole]


def test_a_frame_sent_back_is_not_heard() -> None:
    head, member = meet(Greeting(TOKEN, HERE), Introduction(TOKEN, HERE))
    assert heard(head.into, framed(head.out, b"verdict")) == []
    assert heard(member.into, framed(member.out, b"here")) == []


def test_an_address_is_known_in_all_its_forms() -> None:
    assert endpoint(("::ffff:10.0.0.1", 21000, 0, 0)) == endpoint(("10.0.0.1", 21000)) == HERE
    assert endpoint(("fe80::1%eth0", 1, 0, 2)) == endpoint(("fe80:0::1", 1))
    assert [str(endpoint(("::1", 5))), str(HERE)] == ["[::1]:5", "10.0.0.1:21000"]
