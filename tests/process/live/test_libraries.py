"""Questions to the libraries of real processes: a server that speaks the protocol of NCCL RAS, files, torch
itself.
"""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from doctor.live.libraries import recorder
from doctor.live.libraries.consult import opinions
from doctor.live.libraries.opinions import OpinionKind, Trust
from doctor.live.onhost import ask, libraries, proc
from doctor.live.onhost.careful import carefully
from doctor.live.sight import HostsToSee, see
from doctor.model import Host
from doctor.transport.local import LocalTransport
from tests.support.cases import cases, from_cases
from tests.support.injob import free_port
from tests.support.library_texts import SAMPLES, sample

ANSWERS = {
    "CLIENT PROTOCOL 2": "SERVER PROTOCOL 2\n",
    "TIMEOUT 2": "OK\n",
    "SET FORMAT json": "OK\n",
    "VERBOSE STATUS": sample("ras_missing_2.29.json"),
}
HOLD = "import time, sys, mmap\nprint('up', flush=True)\ntime.sleep(1000)\n"


class Ras:
    """A server on loopback that records the questions."""

    def __init__(self, answers: dict[str, str]) -> None:
        self.answers = answers
        self.heard: list[list[str]] = []
        self.open: list[socket.socket] = []
        self.server = socket.create_server(("127.0.0.1", 0))
        self.address = ("127.0.0.1", self.server.getsockname()[1])
        self.name = f"localhost:{self.address[1]}"
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self) -> None:
        while True:
            try:
                connection, _ = self.server.accept()
            except OSError:
                return
            self.open.append(connection)
            asked: list[str] = []
            self.heard.append(asked)
            threading.Thread(target=self.answer, args=(connection, asked), daemon=True).start()

    def answer(self, connection: socket.socket, asked: list[str]) -> None:
        with suppress(OSError), connection, connection.makefile("rw") as lines:
            for line in lines:
                asked.append(line.strip())
                said = self.answers.get(line.strip(), "" if not self.answers else "ERROR: Unknown command\n")
                lines.write(said)
                lines.flush()
                if "STATUS" in line and said:
                    break

    def close(self) -> None:
        for each in (self.server, *self.open):
            each.close()


@pytest.fixture
def ras() -> Iterator[Ras]:
    server = Ras(dict(ANSWERS))
    yield server
    server.close()


def test_ras_is_asked_as_its_own_client_asks(ras: Ras) -> None:
    answer = ask.ras_state(ras.address)
    assert ras.heard == [["CLIENT PROTOCOL 2", "TIMEOUT 2", "SET FORMAT json", "VERBOSE STATUS"]]
    assert json.loads(answer["text"]) == json.loads(sample("ras_missing_2.29.json"))
    assert "\n" not in answer["text"]


def test_an_older_ras_is_not_asked_for_its_text(ras: Ras) -> None:
    del ras.answers["SET FORMAT json"]
    answer = ask.ras_state(ras.address)
    assert "text only" in answer["problem"]
    assert "VERBOSE STATUS" not in ras.heard[0]


def test_another_server_is_left_alone(ras: Ras) -> None:
    ras.answers["CLIENT PROTOCOL 2"] = "HTTP/1.1 400 Bad Request\n"
    assert ask.ras_state(ras.address)["problem"] == "it is not NCCL's RAS"
    assert ras.heard == [["CLIENT PROTOCOL 2"]]


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert "no connection" in ask.ras_state(("127.0.0.1", port))["problem"]


def test_a_server_that_never_answers_costs_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ask, "SECONDS", 0.5)
    mute = Ras({})
    began = time.monotonic()
    assert "no answer within 0.5 s" in ask.ras_state(mute.address)["problem"]
    assert time.monotonic() - began < 60
    mute.close()


def test_a_server_that_drips_costs_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ask, "SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            connection, _ = server.accept()
            with connection:
                for _ in range(6_000):
                    try:
                        connection.sendall(b"S")
                    except OSError:
                        return
                    time.sleep(0.02)

        thread = threading.Thread(target=drip)
        thread.start()
        began = time.monotonic()
        answer = ask.ras_state(server.getsockname())
        assert time.monotonic() - began < 60
        thread.join()
    assert "no answer within" in answer["problem"]


def test_a_server_that_never_stops(monkeypatch: pytest.MonkeyPatch, ras: Ras) -> None:
    monkeypatch.setattr(ask, "MOST", 100_000)
    ras.answers["VERBOSE STATUS"] = "x" * 500_000
    assert "it sent more than" in ask.ras_state(ras.address)["problem"]


@cases
def test_where_ras_is(environ: dict[str, str], place: tuple[str, int] | None) -> None:
    assert ask.ras_address(environ) == place


def end(started: Iterable[subprocess.Popen[bytes]]) -> None:
    for one in started:
        one.kill()
        one.communicate()


@pytest.fixture
def rank(tmp_path: Path) -> Iterator[Any]:
    """Starts a process as a rank with these variables and, if requested, a mapped library of that name."""
    started: list[subprocess.Popen[bytes]] = []

    def start(environ: dict[str, str], library: str = "", out: Path | None = None) -> dict[str, Any]:
        code = HOLD
        if library:
            path = tmp_path / library
            path.write_bytes(b"x" * 4096)
            code = (
                f"import mmap\nfile = open({str(path)!r}, 'r+b')\nheld = mmap.mmap(file.fileno(), 0)\n" + HOLD
            )
        env = {"PATH": os.environ["PATH"], "RANK": "0", "WORLD_SIZE": "2", **environ}
        if out is None:
            one = subprocess.Popen([sys.executable, "-c", code], env=env, stdout=subprocess.PIPE)
            assert one.stdout is not None
            assert one.stdout.readline() == b"up\n"
        else:
            with out.open("wb") as log:
                one = subprocess.Popen([sys.executable, "-c", code], env=env, stdout=log)
            while not out.read_bytes():
                time.sleep(0.01)
        started.append(one)
        row = proc.row((one.pid, False))
        assert row is not None
        return {"pid": one.pid, "start": row["start"], "rank": 0, "world": 2}

    yield start
    end(started)


def test_ras_is_asked_twice_where_a_rank_has_nccl_loaded(ras: Ras, rank: Any) -> None:
    member = rank({"NCCL_RAS_ADDR": ras.name}, "libnccl.so.2")
    texts = libraries.gather([member], 0.1)
    assert [(each["source"], each["which"], bool(each["text"])) for each in texts] == [
        ("nccl-ras", "a", True),
        ("nccl-ras", "b", True),
    ]
    assert len(ras.heard) == 2


def test_ras_is_not_asked_without_nccl(ras: Ras, rank: Any) -> None:
    assert libraries.gather([rank({"NCCL_RAS_ADDR": ras.name})], 0.1) == []
    assert ras.heard == []


def test_ranks_in_the_middle_leave_it_to_others(ras: Ras, rank: Any) -> None:
    member = rank({"NCCL_RAS_ADDR": ras.name}, "libnccl.so.2")
    assert libraries.gather([dict(member, rank=3, world=8)], 0.1) == []


def test_a_gathering_beside_the_looks_says_the_same(ras: Ras, rank: Any) -> None:
    member = rank({"NCCL_RAS_ADDR": ras.name}, "libnccl.so.2")
    gathering = libraries.GatherProcess([member], 0.1)
    assert [each["which"] for each in gathering.texts()] == ["a", "b"]


def test_a_gathering_is_over_in_time(rank: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libraries, "SECONDS", 0.5)
    mute = Ras({})
    member = rank({"NCCL_RAS_ADDR": mute.name}, "libnccl.so.2")
    began = time.monotonic()
    assert list(libraries.GatherProcess([member], 0.1).texts()) == []
    assert time.monotonic() - began < 60
    mute.close()


def test_what_was_gathered_is_kept_if_the_looks_took_longer(
    ras: Ras, rank: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(libraries, "SECONDS", 5.0)
    member = rank({"NCCL_RAS_ADDR": ras.name}, "libnccl.so.2")
    gathering = libraries.GatherProcess([member], 0.1)
    while len(ras.heard) < 2:
        time.sleep(0.05)
    time.sleep(max(0.0, gathering.deadline - time.monotonic()) + 0.1)
    assert [each["which"] for each in gathering.texts()] == ["a", "b"]


def test_files_of_a_rank(rank: Any, tmp_path: Path) -> None:
    logs = tmp_path / "logs" / "debug" / "plog"
    logs.mkdir(parents=True)
    out = tmp_path / "worker_0.log"
    old = tmp_path / "old_0"
    old.write_bytes((SAMPLES / "recorder_waits.pickle").read_bytes())
    os.utime(old, (1, 1))
    member = rank(
        {
            "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": str(tmp_path / "fr_"),
            "TORCH_FR_DUMP_TEMP_FILE": str(tmp_path / "old_"),
            "TORCH_HCCL_STATUS_SAVE_PATH": str(tmp_path),
            "ASCEND_PROCESS_LOG_PATH": str(tmp_path / "logs"),
        },
        "libhccl.so",
        out,
    )
    pid = member["pid"]
    (tmp_path / "fr_0").write_bytes((SAMPLES / "recorder_waits.pickle").read_bytes())
    status = "torch_hccl_status-0_10.0.0.1_0_2_{}_1795284713000.log"
    body = sample(status.format(4711))
    (tmp_path / status.format(pid)).write_text(body)
    (tmp_path / status.format(pid + 1)).write_text(body)
    (logs / f"plog-{pid}_20261120.log").write_text(
        "[INFO] secret\n" + sample("plog_heartbeat.log") + "more\n"
    )
    (tmp_path / "scheduler.log").write_text("noise\n" + sample("scheduler.log"))
    texts = libraries.gather([member], 0.1)
    assert [(each["source"], each["which"], each["pid"]) for each in texts] == [
        ("torch_npu-status", "a", pid),
        ("torch_npu-status", "b", pid),
        ("flight-recorder", "a", pid),
        ("hccl-heartbeat", "a", pid),
        ("mindspore-scheduler", "a", None),
    ]
    assert not any("secret" in each["text"] or "noise" in each["text"] for each in texts)
    assert json.loads(texts[2]["text"])["pg_status"]["0"]["last_enqueued_collective"] == 4


def test_the_log_of_a_rank_shows_how_long_its_steps_take(rank: Any, tmp_path: Path) -> None:
    out = tmp_path / "train.log"
    member = rank({}, "libhccl.so", out)
    with out.open("a") as log:
        log.write("secret\n\r 10%|#   | 3/30 [02:15<20:15, 45.00s/it]")
    texts = libraries.gather([member], 0.1)
    said = [(each["source"], each["text"], each["pid"]) for each in texts]
    assert said == [("step-pace", "45.000", member["pid"])]


def test_files_that_are_not_what_they_are_called(rank: Any, tmp_path: Path) -> None:
    """A link, a pipe without a writer, and a dump that is something else."""
    (tmp_path / "link_0").symlink_to(SAMPLES / "recorder_waits.pickle")
    os.mkfifo(tmp_path / "pipe_0")
    member = rank(
        {
            "TORCH_FR_DUMP_TEMP_FILE": str(tmp_path / "link_"),
            "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": str(tmp_path / "pipe_"),
            "TORCH_HCCL_DEBUG_INFO_TEMP_FILE": str(tmp_path / "other_"),
        }
    )
    (tmp_path / "other_0").write_text("root:x:0:0")
    (one,) = libraries.gather([member], 0.1)
    assert (one["name"], one["text"], one["problem"]) == (str(tmp_path / "other_0"), "", "it is damaged")


SERVER = from_cases(__file__, "SERVER", str)


@pytest.mark.slow
def test_the_worker_server_of_torch_is_asked(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    path = tmp_path / "worker.sock"
    one = subprocess.Popen([sys.executable, "-W", "ignore", "-c", SERVER, str(path)], stdout=subprocess.PIPE)
    try:
        assert one.stdout is not None
        assert one.stdout.readline() == b"up\n"
        ((_, answer),) = carefully(ask.server_dump, [str(path)], 6.0)
        assert answer["pid"] == one.pid
        last = json.loads(answer["text"])["entries"][-1]
        assert (last["profiling_name"], last["retired"]) == ("gloo:all_reduce", True)
    finally:
        end([one])


JOB = from_cases(__file__, "JOB", str)


@pytest.mark.slow
def test_the_recorder_of_a_real_job_names_the_rank_that_sleeps(tmp_path: Path) -> None:
    """Through the agent and back: its answer becomes an opinion."""
    pytest.importorskip("torch")
    port, started = free_port(), []
    for rank in range(2):
        env = {
            "PATH": os.environ["PATH"],
            "RANK": str(rank),
            "WORLD_SIZE": "2",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            "TORCH_WORKER_SERVER_SOCKET": str(tmp_path / f"worker{rank}.sock"),
        }
        command = [sys.executable, "-W", "ignore", "-c", JOB]
        started.append(subprocess.Popen(command, env=env, stdout=subprocess.PIPE))
    transport = LocalTransport()
    try:
        for one in started:
            assert one.stdout is not None
            assert one.stdout.readline() == b"up\n"
        time.sleep(recorder.WAITED + 0.5)
        evidence = see(HostsToSee([Host("here", "localhost")], transport), 0.5).evidence
        pids = {each.pid for each in started}
        ranks = [member for member in evidence.hosts[0].members if member.pid in pids]
        (found,) = opinions(evidence, ranks)
        assert (found.kind, found.trust, found.ranks) == (OpinionKind.BLAMES, Trust.STRONG, {1})
    finally:
        transport.close()
        end(started)
