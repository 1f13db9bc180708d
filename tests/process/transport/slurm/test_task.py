"""The task of each node, run by a real shell: two tasks share an input, as under srun."""

import os
import shutil
import subprocess
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doctor.transport.slurm.task import (
    TASK,
    Keys,
    StreamSplitter,
    TaskLine,
    hang_up,
    opening,
    openings,
    to_hosts,
)

TOKEN = "0123456789abcdef0123456789abcdef"
NAMES = ("node1", "node11.cluster")
SHELLS = [shell for shell in ("dash", "bash", "busybox") if shutil.which(shell)]


def run(
    sent: bytes, names: Sequence[str] = NAMES, shell: str = "sh"
) -> tuple[dict[str, bytes], dict[str, bytes], dict[str, int | None]]:
    """The stdout, stderr and exit status of each host when all get the same input."""
    start = ["busybox", "sh"] if shell == "busybox" else [shell]
    tasks = [
        subprocess.Popen(
            [*start, "-c", TASK],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=node(name),
        )
        for name in names
    ]
    streams = [task.communicate(sent, timeout=60) for task in tasks]
    keys = Keys(TOKEN, names)
    labelled = [[_labelled(n, data) for data in stream] for n, stream in enumerate(streams)]
    out, err = (_told(b"".join(stream[n] for stream in labelled), keys) for n in (0, 1))
    ended = {each.host: each.rc for each in out if each.kind == "ended" and each.host}
    assert not [each for each in (*out, *err) if each.kind == "other"], (out, err)
    return _joined(out, names), _joined(err, names), ended


def _labelled(task: int, data: bytes) -> bytes:
    """The output as srun --label prints it."""
    return b"".join(b"%2d: %s\n" % (task, line) for line in data.split(b"\n")[:-1])


def node(name: str) -> dict[str, str]:
    return {**os.environ, "SLURMD_NODENAME": name, "DOCTOR_TOKEN": TOKEN}


def _told(data: bytes, keys: Keys) -> list[TaskLine]:
    """The output, read as it might arrive: in small pieces."""
    ear = StreamSplitter(keys)
    return [said for n in range(0, len(data), 700) for said in ear.hear(data[n : n + 700])] + ear.rest()


def _joined(said: Sequence[TaskLine], names: Sequence[str]) -> dict[str, bytes]:
    return {name: b"".join(each.data for each in said if each.host == name) for name in names}


@pytest.mark.parametrize("shell", SHELLS)
def test_each_task_picks_its_own_lines(shell: str) -> None:
    texts = {name: opening(f"echo I am {name}; cat; exit {n}", b"common\n") for n, name in enumerate(NAMES)}
    sent = openings(texts) + to_hosts(["node1"], [b"for the first"]) + to_hosts(None, [b"for all"])
    out, err, ended = run(sent, shell=shell)
    assert out["node1"] == b"I am node1\ncommon\nfor the first\nfor all\n"
    assert out["node11.cluster"] == b"I am node11.cluster\ncommon\nfor all\n"
    assert err == {"node1": b"", "node11.cluster": b""}
    assert ended == {"node1": 0, "node11.cluster": 1}


def test_both_streams_long_lines_and_the_mark_itself() -> None:
    """Percent signs separate the pieces; here, they occur at every border."""
    odd = b"%" * 399 + b"x%p%h\n" + b"a" * 400 + b"\n" + b"%x 3\n\n" + bytes(range(128, 256)) + b"\n"
    out, err, ended = run(openings({"node1": opening("tee /dev/stderr", odd * 20)}), ["node1"])
    assert out["node1"] == odd * 20
    assert err["node1"] == odd * 20
    assert ended == {"node1": 0}


@settings(max_examples=8)
@given(st.lists(st.binary(max_size=1300).map(lambda data: data.replace(b"\n", b"")), max_size=4))
def test_any_bytes_are_passed_through(lines: list[bytes]) -> None:
    text = b"".join(line + b"\n" for line in lines)
    out, _, ended = run(openings({"node1": opening("cat", text)}), ["node1"])
    assert out["node1"] == text
    assert ended == {"node1": 0}


def test_a_command_of_several_lines() -> None:
    out, _, _ = run(openings({"node1": opening("echo 'one\n  two\\'\necho three", b"")}), ["node1"])
    assert out["node1"] == b"one\n  two\\\nthree\n"


def test_no_line_is_longer_than_slurm_keeps_whole() -> None:
    name = "n" * 100
    task = subprocess.run(
        ["sh", "-c", TASK],
        input=openings({name: opening("printf %5000d 0 | tr ' ' %", b"")}),
        capture_output=True,
        timeout=60,
        env=node(name),
    )
    assert max(map(len, task.stdout.split(b"\n"))) < 1023


def test_hanging_up_ends_the_input_of_one_host_only() -> None:
    texts = {name: opening("cat; echo over", b"") for name in NAMES}
    sent = openings(texts) + hang_up(["node1"]) + to_hosts(None, [b"still there?"])
    out, _, ended = run(sent)
    assert out == {"node1": b"over\n", "node11.cluster": b"still there?\nover\n"}
    assert set(ended.values()) == {0}


def test_an_end_by_signal_and_an_unknown_command() -> None:
    texts = {"node1": opening("kill -9 $$", b""), "node11.cluster": opening("no-such-program", b"")}
    out, err, ended = run(openings(texts))
    assert set(out.values()) == {b""}
    assert b"no-such-program" in err["node11.cluster"]
    assert ended == {"node1": 137, "node11.cluster": 127}


@pytest.mark.parametrize("name", ["", "a b", "a/b", "$(id)", "a*"])
def test_a_strange_node_name_starts_nothing(name: str) -> None:
    task = subprocess.run(
        ["sh", "-c", TASK],
        input=to_hosts(None, opening("echo wrong", b"")),
        capture_output=True,
        timeout=60,
        env=node(name),
    )
    assert (task.returncode, task.stdout) == (0, b"")


@pytest.mark.parametrize("shell", SHELLS)
def test_neither_token_nor_key_is_in_a_command_line_or_known_to_what_runs(shell: str) -> None:
    """Every other user of the node can read the command lines."""
    look = "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n'; env"
    start = ["busybox", "sh"] if shell == "busybox" else [shell]
    task = subprocess.run(
        [*start, "-c", TASK],
        input=openings({"node1": opening(look, b"")}),
        capture_output=True,
        timeout=60,
        env=node("node1"),
        check=False,
    )
    hello, *lines = task.stdout.splitlines()
    token, name, _, key = hello.split()
    assert (token, name, len(key)) == (TOKEN.encode(), b"node1", 32)
    assert len(lines) > 5
    for line in lines:
        assert line.startswith(key + b" node1 ")
        assert token not in line
        assert key not in line[len(key) :]
