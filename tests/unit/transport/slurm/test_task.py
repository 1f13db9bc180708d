"""The output of the nodes' tasks, taken apart: who sent each line, and that no node can speak for another."""

import pytest

from doctor.transport.errors import CannotReach
from doctor.transport.slurm.program import SrunProgram
from doctor.transport.slurm.task import Keys, StreamSplitter, TaskLine, opening, openings

TOKEN = "0123456789abcdef0123456789abcdef"
ONE, TWO = b"1" * 32, b"2" * 32


def hello(name: str, key: bytes, task: bytes = b"0: ") -> bytes:
    return b"%s%s %s %%h %s\n" % (task, TOKEN.encode(), name.encode(), key)


@pytest.fixture
def ear() -> StreamSplitter:
    """The receiver of a step in which node1 has identified itself."""
    ear = StreamSplitter(Keys(TOKEN, ["node1", "node2"]))
    assert ear.hear(hello("node1", ONE)) == [TaskLine("node1", "hello")]
    return ear


def test_equal_lines_are_sent_once() -> None:
    body = b"".join(b"line %d\n" % n for n in range(100))
    texts = {f"node{n}": opening("cat", b"my name\nis %d\n" % n + body) for n in range(50)}
    sent = openings(texts)
    assert sent.count(b"line 42") == 1
    assert len(sent) < 50 * 40 + 2 * len(body)


@pytest.mark.parametrize(
    "line",
    [
        b"a prolog speaks",
        ONE,
        ONE + b" node1",
        ONE + b" stranger data",
        TWO + b" node1 data",
        TOKEN.encode() + b" node1 data",
        b"\xff\xfe",
    ],
)
def test_lines_that_are_not_from_a_task(line: bytes, ear: StreamSplitter) -> None:
    for label in (b"", b"0: "):
        (said,) = ear.hear(label + line + b"\n")
        assert (said.host, said.kind, said.data) == (None, "other", line)


def test_a_node_speaks_only_for_itself(ear: StreamSplitter) -> None:
    """It knows the run's token, and its own key."""
    assert ear.hear(b"0: " + ONE + b" node1 data\n") == [TaskLine("node1", "data", b"data\n")]
    assert [said.host for said in ear.hear(hello("node2", ONE) + hello("node2", TWO))] == [None, None]
    (said,) = ear.hear(b"1: " + ONE + b" node1 data\n")
    assert said.host is None
    for words in (b"data", b"%x 0"):
        for key in (ONE, TOKEN.encode()):
            for before in (b"", b"node2 ", ONE + b" "):
                (said,) = ear.hear(b"0: %s%s node2 %s\n" % (before, key, words))
                assert said.host != "node2"
    assert ear.hear(hello("node2", TWO, b"1: ")) == [TaskLine("node2", "hello")]
    (said,) = ear.hear(b"0: " + ONE + b" node2 data\n")
    assert said.host is None
    (said,) = ear.hear(b"0: " + ONE + b" node1 " + ONE + b" node2 data\n")
    assert (said.host, said.data) == ("node1", ONE + b" node2 data\n")


def test_a_name_that_two_tasks_claim_is_believed_to_neither(ear: StreamSplitter) -> None:
    assert ear.hear(hello("node2", ONE, b"2: ")) == [TaskLine("node2", "hello")]
    assert ear.hear(hello("node2", TWO, b"1: ")) == [TaskLine("node2", "contested")]
    program = SrunProgram("node2", lambda: None, lambda: None)
    program.said("out", TaskLine("node2", "data", b"all is well\n"))
    program.doubt()
    program.said("out", TaskLine("node2", "data", b"all is well\n"))
    assert program.take() == (b"", b"")
    with pytest.raises(CannotReach, match="Several tasks of the step claim to run on node2"):
        program.finished()


def test_a_prolog_that_leaves_its_line_open(ear: StreamSplitter) -> None:
    (said,) = ear.hear(b"0: loading modules... " + ONE + b" node1 hello\n")
    assert (said.host, said.data) == ("node1", b"hello\n")
    (said,) = ear.hear(b"1: loading modules... " + hello("node2", TWO, b""))
    assert said == TaskLine("node2", "hello")


def test_endless_lines_are_bounded(ear: StreamSplitter) -> None:
    for _ in range(100):
        assert ear.hear(b"x" * 10_000) == []
    (said,) = ear.rest()
    assert len(said.data) <= 8192
