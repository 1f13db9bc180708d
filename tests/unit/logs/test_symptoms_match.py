"""Lines that are made to be slow or misleading."""

import random
import time
from collections.abc import Callable

import pytest

from doctor.logs.model import Form, Role, Symptom
from doctor.logs.reading import sentences
from doctor.logs.reading.sentences import ODD, SYMPTOM, Sentences
from doctor.logs.sentence import sentence
from doctor.logs.symptoms.literals import taken
from doctor.logs.symptoms.load import load_symptoms
from doctor.logs.symptoms.lookup import spelled
from doctor.logs.symptoms.match import Matcher
from tests.support.cases import cases
from tests.support.limits import slowness

FOUND = load_symptoms().symptoms


def symptom(id: str, *patterns: tuple[str, ...], **more: object) -> Symptom:
    return Symptom(id, id, "test", more.pop("role", Role.ROOT), patterns, **more)  # type: ignore[arg-type]


def ids(matcher: Matcher, text: str, form: Form | None = None) -> list[str]:
    return [each.id for each, _ in matcher.decide(text, form)]


def candidates(matcher: Matcher, text: str) -> list[str]:
    """The lines that are examined for a symptom."""
    lines = text.split("\n")
    possible = matcher.possible({sentence(line.encode()) for line in lines})
    return [line for line in lines if sentence(line.encode()) in possible and matcher.holds(line.encode())]


def test_literals_stand_in_their_order() -> None:
    matcher = Matcher([symptom("a", ("first word", "second word"))])
    assert ids(matcher, "x first word y second word z") == ["a"]
    assert ids(matcher, "second word, then first word") == []
    assert ids(matcher, "first second word") == []


def test_literals_do_not_overlap() -> None:
    matcher = Matcher([symptom("a", ("abcabc", "abcabc"))])
    assert ids(matcher, "abcabcabc") == []
    assert ids(matcher, "abcabcabcabc") == ["a"]


def test_digits_of_a_literal_count() -> None:
    """Sentences are compared without their numbers, lines are not."""
    matcher = Matcher([symptom("nine", ("exitcode  : -9 (pid",)), symptom("seven", ("exitcode  : -7 (pid",))])
    text = (
        "exitcode  : -1 (pid: 1)\nexitcode  : -9 (pid: 2)\nexitcode  : -15 (pid: 3)\nexitcode  : -7 (pid: 4)"
    )
    assert [ids(matcher, line) for line in candidates(matcher, text)] == [["nine"], ["seven"]]
    assert ids(matcher, "exitcode  : -15 (pid: 3)") == []


def test_a_code_that_is_mostly_a_number_is_found() -> None:
    matcher = Matcher([symptom("ei", ("EI0006",)), symptom("ej", ("EJ0006",))])
    text = "step 1\nEI0007: no\nEI0006: Getting socket times out\n\nEJ0006 EI0006\n"
    assert [line[:6] for line in candidates(matcher, text)] == ["EI0006", "EJ0006"]
    assert ids(matcher, "EJ0006 EI0006") == ["ei", "ej"]


def test_a_message_counts_in_its_own_form_alone() -> None:
    matcher = Matcher([symptom("oom", ("Out of memory: Killed",), forms=frozenset({Form.KERNEL}))])
    assert ids(matcher, "Out of memory: Killed process 7", Form.KERNEL) == ["oom"]
    assert ids(matcher, "Out of memory: Killed process 7", Form.PLAIN) == []
    assert ids(matcher, "Out of memory: Killed process 7") == ["oom"]


def test_advice_silences_the_rest_of_its_line() -> None:
    advice = symptom("advice", ("might be caused by",), role=Role.ADVICE)
    matcher = Matcher([symptom("a", ("the link is down",)), advice])
    assert ids(matcher, "this might be caused by: the link is down") == ["advice"]
    assert ids(matcher, "the link is down") == ["a"]


def test_what_another_of_the_line_explains_does_not_count() -> None:
    matcher = Matcher(
        [symptom("cancel", ("CANCELLED",)), symptom("limit", ("CANCELLED", "TIME LIMIT"), explains=("can*",))]
    )
    assert ids(matcher, "CANCELLED DUE TO TIME LIMIT") == ["limit"]


def test_the_most_specific_comes_first() -> None:
    matcher = Matcher([symptom("short", ("link is down",)), symptom("long", ("the red link is down",))])
    assert ids(matcher, "the red link is down") == ["long", "short"]


@pytest.mark.slow
def test_no_line_is_left_out_by_its_sentence() -> None:
    """Compared with a search line by line, over random text made of pieces of the literals."""
    chance = random.Random(5)
    words = [word for each in FOUND[:40] for pattern in each.patterns for word in pattern]
    matcher = Matcher(FOUND)
    for _ in range(20):
        lines = [
            " ".join(chance.choices((*words, "step 12", "", "loss 1.5", "\r"), k=chance.randrange(6)))
            for _ in range(200)
        ]
        text = "\n".join(lines)
        expected = [line for line in lines if _slowly(line)]
        assert candidates(matcher, text) == expected


def _slowly(line: str) -> bool:
    def stand(pattern: tuple[str, ...]) -> bool:
        at = 0
        for literal in pattern:
            found = line.find(literal, at)
            if found < 0:
                return False
            at = found + len(literal)
        return True

    return any(stand(pattern) for each in FOUND for pattern in each.patterns)


def seconds(do: Callable[[], object]) -> float:
    """The shorter of two times: other work on the machine only adds time."""
    times = []
    for _ in range(2):
        began = time.process_time()
        do()
        times.append(time.process_time() - began)
    return min(times)


LITERAL = max((p for s in FOUND for pattern in s.patterns for p in pattern), key=len)
HOSTILE = {
    "one letter": "a" * 1_000_000,
    "nearly a literal": (LITERAL[:-1] + "\x01") * (1_000_000 // len(LITERAL)),
    "beginnings of literals": "".join(p[:7] for s in FOUND for pattern in s.patterns for p in pattern) * 100,
    "a literal again and again": (LITERAL + " ") * (1_000_000 // len(LITERAL)),
    "digits": "0123456789" * 100_000,
    "line ends": "\n" * 1_000_000,
    "short lines": "ab\n" * 300_000,
    "lines that never come again": "\n".join(random.Random(n).randbytes(20).hex() for n in range(20_000)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_time_is_bounded_by_length(name: str) -> None:
    text = HOSTILE[name][:1_000_000]
    spent = seconds(lambda: candidates(Matcher(FOUND), text))
    assert spent < 3.0 * slowness()  # a third of a second on an idle machine; an explosion would take hours


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_deciding_on_a_line_is_bounded(name: str) -> None:
    text = HOSTILE[name].replace("\n", " ")
    matcher = Matcher(FOUND)
    assert seconds(lambda: matcher.decide(text, None)) < 3.0 * slowness()


@pytest.mark.parametrize("family", sorted({each.family for each in FOUND}))
def test_take_is_quick_on_lines_made_for_it(family: str) -> None:
    """What a `take` looks for, started again and again and never finished."""
    longest = 0.05 * slowness()
    for each in FOUND:
        pieces = (
            (*each.examples[:2], "a", "1", "rank 1, ", "[1") if each.take and each.family == family else ()
        )
        for piece in pieces:
            for cut in {len(piece), max(1, len(piece) - 2), max(1, len(piece) // 2)}:
                text = (piece[:cut] * 1000)[:20_000]
                assert seconds(lambda each=each, text=text: taken(each, text, 0)) < longest  # type: ignore[misc]


def test_memory_of_sentences_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentences, "MOST_BYTES", 200_000)
    table = Sentences(Matcher([symptom("a", ("a symptom",))]))
    chance = random.Random(1)
    for _ in range(10):
        table.marks({chance.randbytes(40).hex().encode() for _ in range(2000)}, b"")
        assert sum(map(len, table._marks)) < 400_000
    marks = table.marks({b"x", b"itisasymptom", b"xError"}, b"x\nit is a symptom\nx Error")
    assert marks == {b"itisasymptom": SYMPTOM, b"xError": ODD}


@pytest.mark.parametrize("data", [b"", b"\n", b"\x00\xff\xfe\n\x80", "é 中 \u2028 x".encode(), b"\r\r\n"])
def test_odd_bytes_are_no_trouble(data: bytes) -> None:
    matcher = Matcher(FOUND)
    assert matcher.possible(map(sentence, data.split(b"\n"))) == set()
    assert not matcher.holds(data)
    assert matcher.decide(data.decode("utf-8", "surrogateescape"), None) == ()
    assert matcher.decide("\ud800 \udcff", None) == ()


@cases
def test_a_code_is_spelled_in_many_ways(one: str, other: str) -> None:
    assert spelled(one) == spelled(other)


def test_codes_that_differ_stay_apart() -> None:
    codes = ("exit code 9", "exit code -9", "Xid 79", "79", "EI0006", "EI0016", "EJ0006")
    assert len({spelled(code) for code in codes}) == len(codes)


@cases
def test_a_checkpoint_that_torch_does_not_trust_and_a_socket_are_no_broken_files(text: str) -> None:
    assert not {"torch-checkpoint-broken", "python-stale-file"} & {*ids(Matcher(FOUND), text)}
