"""What runs on hosts: how it reads the output of ss and py-spy, and what it leaves out."""

from __future__ import annotations

import ast
import ctypes
import json
import os
import select
import shutil
import socket
import struct
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

import doctor
from doctor.job.launch.brief import brief
from doctor.live.agents import LookAgents
from doctor.live.onhost import (
    agent,
    asks,
    descriptors,
    locks,
    look,
    netlink,
    proc,
    ranks,
    room,
    sockets,
    source,
    stacks,
    syscalls,
)
from doctor.live.onhost.launchers import Launchers
from doctor.slow.onhost import record
from doctor.transport.slurm.task import TOKEN
from tests.support.cases import from_cases

ONHOST = Path(doctor.__file__).parent / "live" / "onhost"
ONE_LINE = from_cases(__file__, "ONE_LINE", str)


def test_looks_that_are_far_apart_have_others_between() -> None:
    def at_all(apart: float) -> list[float]:
        return [at for at, everybody in look.parts(apart) if everybody]

    assert (at_all(0.2), at_all(2.0), at_all(3.9)) == ([], [], [])
    assert (at_all(4.0), at_all(6.0)) == ([2.0], [2.0, 4.0])
    assert (len(at_all(30.0)), len(at_all(60.0)), at_all(60.0)[-1]) == (7, 7, 52.5)


@pytest.mark.parametrize("apart", [0.2, 2.0, 8.0, 60.0])
def test_who_computes_is_looked_at_often(apart: float) -> None:
    assert look.BUSY_LOOKS <= len(look.parts(apart)) <= look.MOST_BETWEEN
    assert all(0 < at < apart for at, _ in look.parts(apart))


def test_connections_as_ss_says_them() -> None:
    found = sockets.parse(ONE_LINE)
    assert set(found) == {"4711", "4712"}, "what belongs to no process is left out"
    first, second = found["4711"], found["4712"]
    assert (first["local"], first["peer"]) == ("127.0.0.1:43614", "127.0.0.1:29500")
    assert (first["received"], first["acknowledged"], first["last_sent"]) == (1234, 900, 5004)
    assert first["last_received"] == 0, "ss leaves out what is 0"
    assert (second["local"], second["peer"]) == ("192.0.2.5:22", "[fd00::1]:40000")
    assert second["persist"]
    assert not first["persist"]
    numbers = ("unacknowledged", "backoff", "last_received")
    assert [second[name] for name in numbers] == [1, 3, 77]


def test_an_older_kernel_tells_less_of_a_connection() -> None:
    whole = bytes(range(208))
    assert netlink._numbers(whole)["backoff"] == 4
    cut = netlink._numbers(whole[:136])
    assert cut["acknowledged"] == cut["sent"] == netlink._numbers(whole)["acknowledged"]
    assert (cut["rate"], cut["busy"]) == (0, 0)
    assert set(netlink._numbers(b"").values()) == {0}


def test_ss_is_not_started_without_time() -> None:
    assert sockets.connections(lambda *_: True, until=0.0) == ({}, "ss: there was no time left for it")


@pytest.mark.parametrize(("loaded", "joins", "unread"), [(True, True, 0), (False, False, 0), (None, True, 1)])
def test_a_rank_whose_libraries_nobody_had_time_to_read_may_join(
    loaded: bool | None, joins: bool, unread: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    member = {"pid": 7, "user": "anna", "helps": None, "joins": False}

    def carefully(work: Any, items: Any, **_: Any) -> Any:
        return [(item, loaded) for item in items] if work is proc.has_library else []

    monkeypatch.setattr(look, "carefully", carefully)
    monkeypatch.setattr(ranks, "members", lambda *_, **__: [dict(member)])
    seen = look.find(Launchers(msgspec.to_builtins(brief())), 1)
    said = seen["unread"]
    found = [each for each in seen["members"] if "words" not in each]
    assert ([each["joins"] for each in found], len(said)) == ([joins], unread)
    assert all("process 7: the libraries" in each for each in said)


def test_py_spy_says_its_version_within_the_time_of_the_look(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []

    def version(_: object, seconds: float) -> tuple[str, str]:
        asked.append(seconds)
        return "", f"no answer within {seconds} s"

    monkeypatch.setattr(stacks.PySpy, "version", version)
    monkeypatch.setattr(shutil, "which", lambda _: "/usr/bin/py-spy")
    _, _, why = agent.LookAgent.pyspy(SimpleNamespace(tool=5), 0.3)  # type: ignore[arg-type]
    assert asked == [0.3, 0.3]
    assert "cannot be used" in why


def test_a_search_that_was_asked_for_before_the_login_has_less_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The controller counts from its request; messages that it sent meanwhile arrive with the command."""
    within: list[float] = []

    def find_within(_: object, __: int, seconds: float, ___: object) -> dict[str, object]:
        within.append(seconds)
        return {}

    monkeypatch.setattr(agent.LookAgent, "hold", lambda *_: None)
    monkeypatch.setattr(agent.LookAgent, "then", lambda _, __, work: work(lambda *_, **__: None))
    monkeypatch.setattr(agent.look, "find", find_within)
    find = {"do": "find", "within": 30.0, "beat": 2.0, "launchers": msgspec.to_builtins(brief())}
    beat = LookAgents.beat
    for beats in (0, 1, 2, 7, 40):
        agent.LookAgent()._commands([json.dumps(find).encode(), *[beat] * beats])
    assert within == [30.0, 30.0, 28.0, 18.0, 0.0]
    del find["beat"]
    agent.LookAgent()._commands([json.dumps(find).encode(), *[beat] * 7])
    assert within[-1] == 30.0


def test_an_older_ss_has_a_heading_and_two_lines_a_connection() -> None:
    heading = "State  Recv-Q Send-Q Local Address:Port  Peer Address:Port Process\n"
    assert sockets.parse(heading + ONE_LINE.replace(" sk:", "\n\t sk:")) == sockets.parse(ONE_LINE)


def test_the_name_of_a_control_group_says_nothing_of_a_connection() -> None:
    """Its user has chosen the name."""
    plain = "ESTAB 0 0 10.0.0.1:1 10.0.0.2:2 uid:7 ino:5 sk:1 {}<-> ts bytes_received:9 lastsnd:3"
    odd = plain.format("cgroup:/a ino:999 uid:0 unacked:7 backoff:5 timer:(persist,1sec,0) <-> b ")
    assert sockets.parse(odd) == sockets.parse(plain.format("")) != {}
    for end in "\x0b\x0c\r\x1c\x85\u2028":
        forged = plain.format(f"cgroup:/a{end}" + plain.format("").replace("ino:5", "ino:78") + " sk:1 ")
        assert set(sockets.parse(forged)) == {"5"}, repr(end)


def test_numbers_that_are_lent_to_a_person_are_the_persons(monkeypatch: pytest.MonkeyPatch) -> None:
    """Except those of root and of services, whose containers may belong to anybody."""
    files = {
        "/etc/passwd": "root:x:0:0::\nsvc:x:999:0::\nalice:x:1001:0::\nbob:x:1002:0::\n",
        "/etc/subuid": "root:100000:10\nsvc:200000:10\nalice:300000:10\n1002:300010:10\nodd:x:\n",
    }
    monkeypatch.setattr(proc, "lenient", lambda path, _=0: files[path])
    known = {0: "root", 999: "svc", 1001: "alice", 1002: "bob"}
    numbers = {100_000, 200_000, 299_999, 300_000, 300_009, 300_010, 300_020}
    assert proc.users(numbers) == {**known, 300_000: "alice", 300_009: "alice", 300_010: "bob"}


def local(name: str, value: str) -> dict[str, Any]:
    return {"name": name, "repr": value, "addr": 1, "arg": False}


def frame(name: str, file: str, line: int, *locals: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "filename": file, "short_filename": file[-8:], "line": line, "locals": locals}


def thread(*frames: dict[str, Any]) -> dict[str, Any]:
    known = {"pid": 5, "thread_id": 1, "thread_name": "MainThread", "os_thread_id": 5, "active": True}
    return {**known, "owns_gil": True, "frames": list(frames)}


def test_of_locals_only_a_step_number_is_kept() -> None:
    said = [
        thread(
            frame("wait", "/usr/lib/python3.11/threading.py", 300, local("i", "99")),
            frame("forward", "/job/model.py", 9, local("i", "3"), local("api_key", "'swordfish'")),
            frame("train", "/job/train.py", 7, local("step", "57"), local("rank", "2"), local("token", "7")),
        )
    ]
    (one,) = stacks.threads(said)
    assert "swordfish" not in json.dumps(one)
    assert (one["step"], one["rank"], one["owns_gil"], one["tid"]) == (57, 2, True, 5)
    assert one["frames"][2] == {"name": "train", "file": "/job/train.py", "line": 7}
    none = stacks.threads([thread(frame("f", "/job/a.py", 1, local("step", "'x'")))])
    assert "step" not in none[0]


def test_the_number_of_a_process_of_spawn_is_that_on_its_host() -> None:
    spawn = "/opt/venv/lib/python3.11/site-packages/torch/multiprocessing/spawn.py"
    runs = frame("_wrap", spawn, 90, local("i", "3"), local("args", "('swordfish',)"))
    (one,) = stacks.threads([thread(frame("work", "/job/train.py", 7, local("gpu", "3")), runs)])
    assert (one["local"], "rank" in one, "swordfish" in json.dumps(one)) == (3, False, False)
    (named,) = stacks.threads([thread(frame("work", "/job/train.py", 7, local("global_rank", "7")), runs)])
    assert (named["local"], named["rank"]) == (3, 7)


def test_a_counter_of_a_common_name_counts_steps_only_where_it_is_alone() -> None:
    inner, outer = (frame("f", "/job/a.py", 1, local(name, "3")) for name in ("i", "idx"))
    bare, library = frame("g", "/job/b.py", 1), frame("h", "/usr/lib/python3.11/ssl.py", 1, local("i", "9"))
    assert stacks.threads([thread(library, inner, bare)])[0]["step"] == 3
    assert stacks.threads([thread(bare, outer)])[0]["step"] == 3
    inline = [
        frame(f"f.<locals>.{name}", "/job/a.py", 1, local("i", "3")) for name in ("<listcomp>", "<genexpr>")
    ]
    assert not any("step" in stacks.threads([thread(each, bare)])[0] for each in inline)
    assert "step" not in stacks.threads([thread(inner, outer)])[0], "nobody tells which loop makes the steps"
    assert "step" not in stacks.threads([thread(frame("f", "/job/a.py", 1, local("n", "3")))])[0]


def test_long_stacks_lose_their_middle() -> None:
    (one,) = stacks.threads([thread(*(frame(f"f{n}", "/job/a.py", n) for n in range(1000)))])
    lines = [each["line"] for each in one["frames"]]
    assert (lines[0], lines[-1], len(lines)) == (0, 999, stacks.INNER + stacks.OUTER)


def test_py_spy_never_stops_anybody(monkeypatch: pytest.MonkeyPatch) -> None:
    pyspy = stacks.PySpy("/proc/self/fd/9", 9)
    started: list[list[str]] = []
    monkeypatch.setattr(record, "Tool", lambda argv, *_, **__: started.append(argv))
    os.close(record.StackRecord(pyspy, 5, 1.0).file)
    for argv in (pyspy.argv(5), *started):
        assert "--nonblocking" in argv
        assert "--native" not in argv
    assert {"--json", "--locals"} <= set(pyspy.argv(5))
    assert started


AFTER = 2.0**33
"""Seconds since 1970, later than any file."""


def test_lines_of_source_are_those_of_python_files_alone(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("one\n  two\nthree\n")
    (tmp_path / "secret").write_text("hidden\n")
    (tmp_path / "link.py").symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "pipe.py")
    assert source.lines((str(tmp_path / "a.py"), [2, 9], None, AFTER)) == {"2": "two"}
    for other in ("secret", "link.py", "pipe.py", "none.py"):
        assert source.lines((str(tmp_path / other), [1], None, AFTER)) == {}
    assert source.lines(("a.py", [1], None, AFTER)) == {}


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("while not exists(P):\n    sleep(1)\n", 2, "while not exists(P): ... sleep(1)"),
        (
            "while True:\n    try:\n        return ask()\n    except E:\n        sleep(1)\n",
            5,
            "return ask() ... sleep(1)",
        ),
        ("while True:\n    go()\n    sleep(1)\n", 3, "sleep(1)"),
        ("while a:\n    go()\nsleep(1)\n", 3, "sleep(1)"),
        ("while a:\n    go()\n", 2, "go()"),
    ],
)
def test_a_line_that_sleeps_follows_what_its_loop_tests(
    tmp_path: Path, text: str, line: int, said: str
) -> None:
    (tmp_path / "a.py").write_text(text)
    assert source.lines((str(tmp_path / "a.py"), [line], None, AFTER)) == {str(line): said}


def test_no_line_of_a_file_that_is_younger_than_the_process(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("one\n")
    written = (tmp_path / "a.py").stat().st_mtime
    assert source.lines((str(tmp_path / "a.py"), [1], None, written + 1)) == {"1": "one"}
    assert source.lines((str(tmp_path / "a.py"), [1], None, written - 1)) == {source.CHANGED: ""}
    os.utime(tmp_path / "a.py", (0, 0))
    assert source.lines((str(tmp_path / "a.py"), [1], None, written - 1)) == {source.CHANGED: ""}, (
        "as by cp -p"
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
def test_root_reads_a_line_with_the_rights_of_its_process_alone() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        for file, mode in (("open.py", 0o644), ("of_root.py", 0o600), ("of_group.py", 0o640)):
            (folder / file).write_text("line\n")
            (folder / file).chmod(mode)
        os.chown(folder / "of_group.py", 0, 4711)

        def read(file: str, *groups: int) -> bool:
            return bool(source.lines((str(folder / file), [1], (65534, 65534, groups), AFTER)))

        assert read("open.py")
        assert not read("of_root.py")
        assert not read("of_group.py")
        assert read("of_group.py", 4711)
    assert (os.geteuid(), os.getegid()) == (0, 0)


def test_rights_are_those_of_a_process() -> None:
    user, group, groups = proc.rights(os.getpid()) or (None, None, ())
    assert (user, group, sorted(groups)) == (os.geteuid(), os.getegid(), sorted(os.getgroups()))
    assert proc.rights(2**22 - 1) is None


def test_a_look_fits_into_a_message() -> None:
    threads = [{"tid": n, "frames": [{"file": "/x" * 1000, "name": "f", "line": 1}] * 100} for n in range(64)]
    shown = room.bounded({"python": threads, "connections": [], "threads": [], "unread": []})
    assert 0 < len(shown["python"]) < 64
    assert len(json.dumps(shown)) < 1 << 20
    assert shown["unread"]


def test_this_process_as_proc_shows_it() -> None:
    row = proc.row((os.getpid(), True), {"PATH"})
    assert row
    assert row["env"].keys() == {"PATH"}, "what else it has may be secret"
    assert f"{TOKEN}=" == proc.OURS
    seen = proc.seen((os.getpid(), row["start"], False, True))
    assert seen["state"] in "RS"
    assert seen["threads"][0]["tid"] == os.getpid()
    assert min(seen["bytes_moved"], seen["calls"]) > 0
    assert proc.seen((os.getpid(), row["start"] + 1, False, True))["state"] == "", "another one by now"


def test_calls_are_named_by_the_machine_that_makes_them() -> None:
    """98 is futex on one and getrusage on the other; 202 is futex on one and accept on the other."""
    assert syscalls.named(["98", "0x1"], "aarch64") == ["futex", "0x1"]
    assert syscalls.named(["98", "0x1"], "x86_64") == ["call 98", "0x1"]
    assert syscalls.named(["202", "0x1"], "x86_64") == ["futex", "0x1"]
    assert syscalls.named(["202", "0x1"], "aarch64") == ["call 202", "0x1"]
    assert syscalls.named(["running"], "aarch64") == ["running"]
    assert syscalls.named(["202", "0x1"], "s390x") == [], "nothing is better than another call"
    assert syscalls.named([], "x86_64") == []


def test_the_sockets_of_a_process_are_told_by_their_inodes() -> None:
    with socket.socket() as one:
        found = descriptors.opened("/proc/self", [])
        assert found
        assert str(os.fstat(one.fileno()).st_ino) in found["inodes"]


def test_a_standard_stream_is_an_open_file_only_while_it_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rank that reads its samples was said to read them from the log that takes its output."""
    with (tmp_path / "log").open("wb", buffering=0) as log:
        writes = {"syscall": ["write", hex(log.fileno()), "0x1"]}

        def is_open(*threads: dict[str, Any]) -> bool:
            found = descriptors.opened("/proc/self", [{"waits": "", "name": "", **each} for each in threads])
            assert found
            return str(tmp_path / "log") in found["files"]

        assert is_open()
        monkeypatch.setattr(descriptors, "FIRST", log.fileno() + 1)
        assert (is_open(), is_open(writes)) == (False, True)


def test_how_far_a_process_has_come_in_its_files(tmp_path: Path) -> None:
    (tmp_path / "shard").write_bytes(bytes(100))

    def mine(descriptor: int) -> list[str]:
        found = descriptors.opened("/proc/self", [])
        assert found
        return [each for each in found["positions"] if each.startswith(f"{descriptor} ")]

    with (tmp_path / "shard").open("rb", buffering=0) as shard, (tmp_path / "log").open("ab") as log:
        (begin,) = mine(shard.fileno())
        assert (begin.split()[2], mine(shard.fileno())) == ("0", [begin])
        shard.read(40)
        assert mine(shard.fileno()) == [f"{' '.join(begin.split()[:2])} 40"]
        assert mine(log.fileno()) == [], "a log grows while its process stands still"
    assert descriptors.opened("/proc/0", []) is None


LOCAL = from_cases(__file__, "LOCAL", str)


def test_whom_a_thread_polls_on_its_own_host() -> None:
    def asked(*ends: str, pipes: tuple[str, ...] = (), of_helper: tuple[str, ...] = ()) -> list[str]:
        thread: dict[str, Any] = {"tid": 7, "asks": []}
        looks: dict[int, dict[str, Any]] = {
            7: {"inodes": ["11", "21", "22"], "pipes": pipes, "threads": [thread], "polled": {"7": ends}},
            9: {"inodes": ["12"], "pipes": of_helper},
        }
        asks.add(looks, [{"pid": 7}, {"pid": 9, "helps": 7}], {"31": {}}, sockets.parse_local(LOCAL))
        return list(thread["asks"])

    assert asked("socket:[11]") == ["/run/a judge.sock"]
    assert asked("socket:[21]") == [], "the pair by which a loop wakes itself"
    assert asked("socket:[31]") == [], "TCP, of which ss says more"
    assert asked("socket:[41]") == ["a socket"], "it listens"
    assert asked("/dev/pts/3") == ["/dev/pts/3"]
    assert asked("pipe:[5]", pipes=("pipe:[5]",)) == ["a pipe"]
    assert asked("pipe:[5]", pipes=("pipe:[5]", "pipe:[5]")) == []
    assert asked("pipe:[5]", pipes=("pipe:[5]",), of_helper=("pipe:[5]",)) == []


def test_who_reads_a_full_pipe() -> None:
    def asked(*ends: str) -> list[str]:
        thread: dict[str, Any] = {"tid": 7, "waits": "anon_pipe_write", "asks": []}
        look = {"inodes": [], "pipes": (), "threads": [thread], "polled": {"7": ends}}
        asks.add({7: look}, [{"pid": 7}], {}, {})
        return list(thread["asks"])

    reader, writer = os.pipe()
    end = os.readlink(f"/proc/self/fd/{writer}")
    assert [each.partition(" (")[0] for each in asked(end)] == [f"a pipe to process {os.getpid()}"]
    os.close(reader)
    assert asked(end) == [], "nobody reads it any more"
    os.close(writer)


def test_the_connection_that_a_main_thread_waits_for() -> None:
    known: dict[str, dict[str, Any]] = {"31": {}, "32": {}}
    look = {"inodes": ["31", "32"], "threads": [{"tid": 7}, {"tid": 8}]}
    for ends in (("socket:[31]",), ("socket:[31]", "socket:[32]")):
        asks.add({7: {**look, "polled": {"7": ends, "8": ("socket:[32]",)}}}, [{"pid": 7}], known, {})
    assert known == {"31": {"awaited": True}, "32": {}}, "of several it is unknown which"


def test_what_this_thread_polls() -> None:
    ours, theirs = socket.socketpair()
    row = ctypes.create_string_buffer(struct.pack("ihh", theirs.fileno(), select.POLLIN, 0))
    with ours, theirs, select.epoll() as epoll, open(os.devnull, "rb") as other:
        epoll.register(ours)
        sleeps = {
            "tid": 7,
            "name": "python",
            "waits": "ep_poll",
            "syscall": ["epoll_wait", hex(epoll.fileno())],
        }
        polls = {
            "tid": 8,
            "name": "python",
            "waits": "poll_schedule_timeout",
            "syscall": ["poll", hex(ctypes.addressof(row)), "0x1"],
        }
        gloo = dict(sleeps, tid=9, name="gloo_tcp_loop")
        unknown = dict(polls, tid=10, syscall=["restart_syscall"])
        chosen = ctypes.create_string_buffer((1 << ours.fileno()).to_bytes(128, "little"))
        selects = dict(polls, tid=11, syscall=["pselect6", "0x400", hex(ctypes.addressof(chosen))])
        reads = dict(polls, tid=12, waits="anon_pipe_read", syscall=["read", hex(ours.fileno())])
        found = descriptors.opened("/proc/self", [sleeps, polls, gloo, unknown, selects, reads])
        assert found
        assert found["polled"]["7"] == [os.readlink(f"/proc/self/fd/{ours.fileno()}")]
        assert found["polled"]["8"] == [os.readlink(f"/proc/self/fd/{theirs.fileno()}")]
        assert found["polled"]["11"] == found["polled"]["12"] == found["polled"]["7"]
        assert {*found["polled"]["7"], *found["polled"]["8"]} <= {*found["polled"]["10"]}
        assert os.readlink(f"/proc/self/fd/{other.fileno()}") not in found["polled"]["10"]
        assert "9" not in found["polled"], "it waits for other ranks"


def test_what_a_thread_reads_now_is_named_first() -> None:
    reads = {"syscall": ["read", "0x9"]}
    assert descriptors._in_use([reads, {"syscall": ["futex", "0x8"]}, {}]) == {9}


@pytest.mark.parametrize("name", [path.name for path in sorted(ONHOST.glob("*.py"))])
def test_it_is_python_3_6_and_the_standard_library(name: str) -> None:
    tree = ast.parse((ONHOST / name).read_text(), feature_version=(3, 6))
    used = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            used |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            used.add(node.module or "")
    ours = {each for each in used if each.startswith("doctor.")}
    assert all(".onhost" in each for each in ours)
    assert {each.split(".")[0] for each in used - ours} <= sys.stdlib_module_names


def test_lines_of_ss_that_are_no_connection_are_left_out() -> None:
    known = "ESTAB 0 0 10.0.0.1:1 10.0.0.2:2 uid:7 ino:5 sk:1"
    assert set(sockets.parse(known)) == {"5"}
    assert sockets.parse(known.replace("0 0", "x y")) == sockets.parse("ESTAB 0 0 ino:5") == {}


def test_who_waits_behind_others_for_a_lock_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel indents each that waits for one that waits itself."""
    text = "".join(
        f"7: {arrow}FLOCK  ADVISORY  WRITE {pid} fe:00:22 0 EOF\n"
        for pid, arrow in ((4, ""), (5, "-> "), (6, " -> "), (8, "  -> "))
    )
    monkeypatch.setattr(proc, "lenient", lambda *_: text)
    assert [(pid, waits) for _, waits, _, _, pid, _ in locks.entries()] == [
        (4, False),
        (5, True),
        (6, True),
        (8, True),
    ]
