"""Hostfiles: all dialects, and every mistake with its line."""

import os
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from doctor.errors import InputErrors, Mistake
from doctor.model import Host
from doctor.targets.hostfile import read_hostfile
from tests.support.cases import cases
from tests.support.limits import within


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "hosts"


def ranks(path: Path) -> dict[str, int | None]:
    return {host.name: host.ranks for host in read_hostfile(path)}


def mistakes(path: Path) -> list[str]:
    with pytest.raises(InputErrors) as caught:
        read_hostfile(path)
    return [str(m).removeprefix(str(path)) for m in caught.value.mistakes]


def test_all_dialects_in_one_file(file: Path) -> None:
    file.write_bytes(
        b"\xef\xbb\xbf# training hosts\r\n"
        b"\r\n"
        b"node2\r\n"
        b"root@node1   # the head\r\n"
        b"node3 slots=8\n"
        b"node4 slots = 8 max_slots = 16\n"
        b"  node5:8\t\n"
        b"10.0.0.6 slots=4 user=anna\n"
        b"[fd00::7]:2\n"
        b"fd00::8\n"
        b"node[11-12]:4#x\n"
        b"svc@gpu[1,3] slots=2\n"
        b"node9:2 ifhn=192.168.1.9"
    )
    assert read_hostfile(file) == (
        Host("node2", "node2"),
        Host("node1", "node1", user="root"),
        Host("node3", "node3", ranks=8),
        Host("node4", "node4", ranks=8),
        Host("node5", "node5", ranks=8),
        Host("10.0.0.6", "10.0.0.6", user="anna", ranks=4),
        Host("fd00::7", "fd00::7", ranks=2),
        Host("fd00::8", "fd00::8"),
        Host("node11", "node11", ranks=4),
        Host("node12", "node12", ranks=4),
        Host("gpu1", "gpu1", user="svc", ranks=2),
        Host("gpu3", "gpu3", user="svc", ranks=2),
        Host("node9", "node9", ranks=2, data="192.168.1.9"),
    )


@cases
def test_slots_of_a_host_add_up(file: Path, text: str, expected: dict[str, int | None]) -> None:
    file.write_text(text)
    assert list(ranks(file).items()) == list(expected.items())


@cases
def test_each_mistake_has_its_line(file: Path, line: str, said: str) -> None:
    file.write_text(f"# first\ngood1\n{line}\ngood2\n")
    assert mistakes(file) == [f":3: {said}"]


def test_all_mistakes_at_once_in_the_order_of_the_file(file: Path) -> None:
    file.write_text("anna@a\n-x\nroot@a\nb slots=none\nb foo=1\nb ifhn=x\nb ifhn=y\n")
    assert mistakes(file) == [
        ":2: '-x' is not a host name: it starts with '-', as an option does",
        ":3: user of 'a' is 'root' here and 'anna' before",
        ":4: slots: 'none' is not a number from 1 to 1024",
        ":5: unknown word 'foo=1'; a line is: NAME [slots=N]",
        ":7: ifhn of 'b' is 'y' here and 'x' before",
    ]


def test_a_list_of_mistakes_is_bounded(file: Path) -> None:
    file.write_text("?\n" * 5000)
    found = mistakes(file)
    assert len(found) == 101
    assert found[-1] == ": … and 4900 more mistakes"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", ": names no host"),
        (b"# only\n\n  \t\n", ": names no host"),
        (b"\x7fELF\x02\0\0", ": is a binary file, not text"),
        ("node1\n".encode("utf-16"), ": is UTF-16 text: save it as UTF-8"),
        (b"a\nb\xff\n", ":2: is not UTF-8 text: byte 0xff"),
        (b"a\n" * 5_000_001, ": is larger than 10 MB: is it the right file?"),
    ],
    ids=["empty", "comments", "binary", "utf-16", "latin-1", "large"],
)
def test_files_that_are_not_a_hostfile(file: Path, data: bytes, said: str) -> None:
    file.write_bytes(data)
    assert mistakes(file) == [said]


def test_files_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert mistakes(tmp_path) == [": is a directory, not a file"]
    assert mistakes(tmp_path / "none") == [": does not exist"]
    assert mistakes(tmp_path / "a\0b") == [": cannot be read: that is not a file name"]
    assert mistakes(tmp_path / ("x" * 300)) == [": cannot be read: File name too long"]

    def denied(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", denied)  # the suite may run as root, which ignores file modes
    assert mistakes(tmp_path / "x") == [": may not be read by this user (permission denied)"]


def test_a_pipe_is_read_as_a_file(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("node1\n",))
    writer.start()
    assert ranks(pipe) == {"node1": None}
    writer.join()


def test_ten_thousand_hosts_are_quick(file: Path) -> None:
    file.write_text("".join(f"node{i} slots=8\n" for i in range(10_000)))
    with within(5):
        assert len(ranks(file)) == 10_000


@pytest.mark.slow
def test_node_sets_that_expand_without_limit_are_refused(file: Path) -> None:
    file.write_text("node[1-100000]\n" * 300)
    with within(25):
        assert mistakes(file) == [":4: names more than 300,000 hosts: is that a typo?"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.binary(max_size=80) | st.text(alphabet="ab12 :=@[]-,#\n\rslot", max_size=60).map(str.encode))
def test_any_bytes_are_read_or_refused(file: Path, data: bytes) -> None:
    file.write_bytes(data)
    found: tuple[Host | Mistake, ...]
    try:
        found = read_hostfile(file)
    except InputErrors as error:
        found = error.mistakes
    assert found
    assert all(m.message.isprintable() for m in found if isinstance(m, Mistake))
