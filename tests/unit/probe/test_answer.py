"""Reading an answer back: cut off, damaged, imitated, or missing."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doctor.api import Fact, Read, Run
from doctor.model import Answer, AnswerEnd, Capture, Host, Status, UnreachedHost, UnreachedKind
from doctor.probe import HostAnswer, read, through
from doctor.probe.frames import FILES, THERE
from doctor.transport import Script
from tests.support.cases import cases
from tests.support.recordings import heard as healthy
from tests.support.recordings import recording, report

T = "0123456789abcdef"


def fact(name: str, **more: object) -> Fact[str]:
    return Fact(name, Run("x"), lambda capture: capture.stdout, **more)  # type: ignore[arg-type]


ONE, TWO, SLOW = fact("one"), fact("two"), fact("slow", slow=True)
FILE = Fact("file", Read(("/proc/a", "/sys/*/b")), lambda capture: capture.stdout)
ALL = [ONE, TWO, SLOW, FILE]


def out(name: str, text: str, rc: int = 0, *, token: str = T, size: int | None = None) -> bytes:
    data = text.encode()
    return f"\n{token} o {name} {rc} {len(data) if size is None else size}\n".encode() + data + b"\n"


def err(name: str, text: str) -> bytes:
    """The output of a lane's commands on stderr, each after its name."""
    blob = f"\n{T} n before\nnot of this one\n{T} n {name}\n{text}\n\n{T} n behind"
    return f"\n{T} e {len(blob)}\n{blob}\n".encode()


LINES = "/proc/a:1\n/proc/a:2\n/sys/x/b:3\n/sys/x/y/b:4\n/etc/z:5"
DONE = f"\n{T} done\n".encode()
WHOLE = (
    b"Welcome to node1!\n"
    + out("slow", "late")
    + out(FILES, LINES)
    + out("one", "first")
    + err("one", "warning")
    + out("two", "second\n\nlines")
    + DONE
)


def got(stdout: bytes, facts: Sequence[Fact[str]] = ALL, end: AnswerEnd = AnswerEnd.DONE) -> HostAnswer:
    heard = read(Answer("node1", stdout, b"", 0, end, 1.0, 2.0), facts, T)
    assert isinstance(heard, HostAnswer)
    return heard


def reasons(heard: HostAnswer) -> dict[str, str]:
    return {name: missing.reason for name, missing in heard.missing.items()}


def test_a_whole_answer() -> None:
    heard = got(WHOLE)
    assert heard.complete
    assert reasons(heard) == {}
    assert heard.captures == {
        "one": Capture("one", 0, "first", "warning"),
        "two": Capture("two", 0, "second\n\nlines"),
        "slow": Capture("slow", 0, "late"),
        "file": Capture("file", 0, "/proc/a:1\n/proc/a:2\n/sys/x/b:3"),
    }


def test_output_cannot_imitate_a_frame() -> None:
    imitation = out("two", "forged", token="f" * 16).decode() + f"\n{'f' * 16} done\n"
    heard = got(out("one", imitation) + out("two", "true"), [ONE, TWO])
    assert heard.captures["two"].stdout == "true"
    assert not heard.complete
    # Even with the token, a frame inside another's output is part of that output.
    heard = got(out("one", out("two", "forged").decode()) + out("two", "true") + DONE, [ONE, TWO])
    assert heard.captures["two"].stdout == "true"


def test_the_first_of_two_frames_counts() -> None:
    assert got(out("one", "first") + out("one", "again") + DONE, [ONE]).captures["one"].stdout == "first"


@cases
def test_a_cut_answer_says_why(end: AnswerEnd, reason: str) -> None:
    heard = got(out("one", "first"), [ONE, TWO, FILE], end)
    assert not heard.complete
    assert reasons(heard) == {"two": reason, "file": "the answer was cut off before it"}


def test_a_slow_fact_that_never_came() -> None:
    assert reasons(got(out("one", "x") + DONE, [ONE, SLOW])) == {
        "slow": "its command did not end within 15 s and could not be stopped"
    }


@pytest.mark.parametrize("size", [4, 7, 400, 999999999])
def test_a_damaged_frame_hides_no_other(size: int) -> None:
    heard = got(out("one", "first", size=size) + out("two", "second") + DONE, [ONE, TWO])
    assert reasons(heard) == {"one": "its output arrived damaged"}
    assert heard.captures["two"].stdout == "second"


def test_an_incomplete_list_of_files_is_missing() -> None:
    """Otherwise a host would seem to lack the files after the cut."""
    text = "/proc/a:1\n/sys/x/b:2"
    assert reasons(got(out(FILES, text) + DONE, [FILE])) == {}
    assert reasons(got(out(FILES, text, rc=2) + DONE, [FILE])) == {}, "grep did not find some of them"
    names = Fact("names", Read((), there=("/dev/x",)), lambda capture: capture.stdout)
    assert "cut off" in reasons(got(out(FILES, text) + DONE, [names]))["names"]
    assert reasons(got(out(FILES, text) + out(THERE, "/dev/x:") + DONE, [names])) == {}
    damaged = got(out(FILES, text, size=99) + DONE, [FILE])
    assert reasons(damaged) == {"file": "its output arrived damaged"}
    assert damaged.captures == {}
    late = got(out(FILES, text, rc=137) + DONE, [FILE])
    assert reasons(late) == {"file": "reading files did not end within 10 s, or was killed"}


def test_a_missing_answer_is_a_finding_that_names_it() -> None:
    cut = got(WHOLE[: WHOLE.index(b"second")], [ONE, TWO, SLOW], AnswerEnd.LOST)
    damaged = got(out("one", "first", size=7) + DONE, [ONE])
    names = ["node1", "node2", "node3"]
    merged = {
        name: HostAnswer(name, {**whole.captures, **part.captures}, part.missing, part.complete, 1.0, 2.0)
        for name, whole, part in (
            ("node1", healthy(1, names), cut),
            ("node2", healthy(2, names), damaged),
        )
    }
    found = [f for f in report(recording(names, heard=merged)).findings if f.check == "probe-incomplete"]
    assert [(f.hosts, f.status, f.actual or f.summary) for f in found] == [
        (("node1",), Status.WARN, "missing: two"),
        (("node2",), Status.WARN, "missing: one"),
        (("node1", "node2"), Status.UNKNOWN, "the missing part of the answer was not examined"),
    ]


@cases
def test_no_answer_at_all(end: AnswerEnd, rc: int | None, kind: UnreachedKind) -> None:
    motd = b"This account is not available.\nHF_TOKEN=hf_abcdefghijklmnopqrst\n"
    silent = read(Answer("node 1", motd, b"", rc, end, 1.0, 2.0), ALL, T)
    assert isinstance(silent, UnreachedHost)
    assert (silent.host, silent.kind, silent.detail) == ("node 1", kind, "This account is not available.")
    assert "'node 1'" in silent.commands[0]


@cases
def test_a_command_that_cannot_start_is_not_always_absent(rc: int, said: str, why: str) -> None:
    heard = got(out("one", "", rc) + err("one", said) + DONE, [ONE])
    assert reasons(heard) == {"one": why}


@cases
def test_the_line_that_says_why_is_quoted(said: str, why: str) -> None:
    heard = got(out("one", "", 2) + err("one", said) + DONE, [ONE])
    assert reasons(heard) == {"one": f"its command ended with 2: {why}"}


def test_secrets_are_hidden_before_anything_is_parsed() -> None:
    text = "API_TOKEN=abc123 https://u:hunter2@host/"
    heard = got(out("one", text, 9) + err("one", "password: hunter2") + DONE, [ONE])
    assert "hunter2" not in repr(heard)
    assert "abc123" not in repr(heard)


@settings(max_examples=200, deadline=None)
@given(stdout=st.binary(max_size=400), end=st.sampled_from(AnswerEnd), rc=st.none() | st.integers(-15, 255))
def test_random_bytes(stdout: bytes, end: AnswerEnd, rc: int | None) -> None:
    heard = read(Answer("node1", stdout, stdout, rc, end, 1.0, 2.0), ALL, T)
    assert isinstance(heard, UnreachedHost)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_mutilated_answer(data: st.DataObject) -> None:
    """Whatever is lost, every fact is either present or missing with a reason."""
    start = data.draw(st.integers(0, len(WHOLE)))
    end = data.draw(st.integers(start, len(WHOLE)))
    junk = data.draw(st.binary(max_size=20))
    heard = read(
        Answer("node1", WHOLE[:start] + junk + WHOLE[end:], b"", 0, AnswerEnd.DONE, 1.0, 2.0), ALL, T
    )
    if isinstance(heard, HostAnswer):
        assert {f.name for f in ALL} <= heard.captures.keys() | heard.missing.keys()
        assert all(reasons(heard).values())


def test_an_answer_cut_at_every_byte() -> None:
    for end in range(len(WHOLE)):
        heard = read(Answer("node1", WHOLE[:end], b"", None, AnswerEnd.LOST, 1.0, 2.0), ALL, T)
        assert isinstance(heard, UnreachedHost) or not heard.complete


def test_entering_a_container_changes_the_command_only() -> None:
    script = Script("exec sh -s", b"text", b"last")
    assert through(script, Host("h", "h")) is script
    inside = through(script, Host("h", "h", enter="crictl exec -i job"))
    assert inside == Script("exec crictl exec -i job sh -s", b"text", b"last")
