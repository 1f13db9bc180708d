"""The real smoke agent on this machine: what it reports about ranks that a test controls."""

from __future__ import annotations

import os
import re
import signal
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from doctor.agents.bootstrap import LAST_LINE
from doctor.agents.onhost.process import Idleness
from doctor.smoke.agents import smoke_script
from doctor.smoke.onhost.agent import MOST, Stillness
from doctor.transport import SessionEnd
from doctor.transport.local import LocalTransport
from tests.support.cases import cases, from_cases
from tests.support.smoke.agent import JOINING, Agent, Open, agents

BUSY_IN_C = "say(ev='busy'); sum(range(10**12))"


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Open]:
    yield from agents(tmp_path)


def test_a_whole_run_with_torch(agent: Open) -> None:
    """The store, the pipes and the order of answers of a whole run."""
    meet = (
        "import torch.distributed as dist\n"
        "where = json.loads(os.read(go, 4096))\n"
        "store = dist.TCPStore(where['address'], where['port'], is_master=False)\n"
        "store.set(str(place), 'here'); store.wait(['0', '1'])\n"
        "say(ev='met', config=config, threads=len(os.listdir('/proc/self/task')))\n"
    )
    run = agent(torch=None)
    run.start(2, meet, store=True, env={"PYTHONPATH": ""})
    run.until("store")
    run.send(do="join", address="127.0.0.1", port=run.said("store")[0]["port"])
    run.until("exit")
    assert [run.until("exit")["code"], run.said("exit")[0]["code"]] == [0, 0]
    run.stop()
    imported = run.said("imported")[0]
    assert Path(imported["path"]).samefile(sys.executable)
    assert imported["version"].startswith("2.")
    met = {said["rank"]: said["event"] for said in run.said("event") if said["event"]["ev"] == "met"}
    assert met.keys() == {10, 11}
    layout = ["tp-cp-ep-dp-pp", [], 1, 0, 0, 0]
    assert met[11]["config"] == {
        "shape": [2, 1, [2], 3, 1, "gloo", [], False, 0, 0, 1, 1, 1, 0, 0.0, *layout],
        "cell": 0,
        "local": 1,
        "device": None,
        "timeout": 60,
        "inject": [],
        "framework": "torch",
    }
    assert 2**20 < run.said("memory")[0]["peak"] < 2**32
    assert [said["say"] for said in run.heard][-1] == "bye"
    # No event of a rank comes after its exit.
    order = [(said["say"], said["rank"]) for said in run.heard if said["say"] in ("event", "exit")]
    assert all(("event", rank) not in order[order.index(("exit", rank)) :] for rank in (10, 11))


@cases
def test_how_a_rank_ends(agent: Open, act: str, code: int | None, number: int | None, words: str) -> None:
    run = agent()
    run.start(2, act, env={"ACT_1": "time.sleep(600)"})
    said = run.until("exit")
    assert (said["rank"], said["code"], said["signal"]) == (10, code, number)
    assert re.search(words, said["words"])
    assert said["last"]["page"][2] == 1
    run.send(do="look", id=5)
    looked = run.until("pages", lambda said: said["id"] == 5)
    assert [row["rank"] for row in looked["ranks"]] == [11]


def test_pages_show_where_ranks_are(agent: Open) -> None:
    run = agent()
    run.start(1, JOINING)
    pid = run.spawned()["10"]
    at_rest = run.page(lambda row: row["page"][2] == 2 and row["still"] > 0.5)
    assert at_rest["quiet"] >= 0.5
    run.send(do="join", address="10.0.0.1", port=5)
    assert run.event("joined")["line"] == '{"do": "join", "address": "10.0.0.1", "port": 5}\n'
    moving = run.page(lambda row: row["page"][2] == 5 and row["page"][0] > 20)
    assert moving["ranks"][0]["page"][1] == pid
    assert moving["ranks"][0]["page"][5:10] == [1, 1, 1, 1, 4]
    assert moving["gap"] < 0.5  # the gap of the previous phase does not count
    assert moving["ranks"][0]["disturbed"] is None


def test_lines_about_pages_are_few(agent: Open) -> None:
    run = agent()
    run.start(1, JOINING)
    run.page(lambda row: row["page"][2] == 2 and row["still"] > 0.3)
    assert 1 <= _pages_in(run, 2.0) <= 5
    run.send(do="join")
    run.page(lambda row: row["page"][2] == 5)
    assert 3 <= _pages_in(run, 2.0) <= 21


def _pages_in(run: Agent, seconds: float) -> int:
    before, until = len(run.said("pages")), time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        run.hear(left)
    return len(run.said("pages")) - before


def test_stopping_and_continuing_a_rank_is_noticed(agent: Open) -> None:
    run = agent()
    run.start(1, JOINING)
    pid = run.spawned()["10"]
    run.page(lambda row: row["state"] == "S")
    began = time.monotonic()
    os.kill(pid, signal.SIGSTOP)
    run.page(lambda row: row["state"] == "T")
    assert 0.25 <= time.monotonic() - began < 60  # two looks need not be exactly as far apart
    os.kill(pid, signal.SIGCONT)
    run.page(lambda row: row["state"] != "T", seconds=0.4)


def test_a_short_stop_is_not_reported(agent: Open) -> None:
    run = agent()
    run.start()
    pid = run.spawned()["10"]
    run.page(lambda row: row["state"] == "S")
    os.kill(pid, signal.SIGSTOP)
    time.sleep(0.1)
    os.kill(pid, signal.SIGCONT)
    _pages_in(run, 1.0)
    assert {row["state"] for said in run.said("pages") for row in said["ranks"]} <= {"S", "R", ""}


def test_an_injected_fault_is_timed(agent: Open) -> None:
    run = agent()
    run.start(1, "page.disturb(); time.sleep(600)")
    said = run.page(lambda row: row["disturbed"] is not None and row["disturbed"] > 0.5)
    assert said["ranks"][0]["disturbed"] < 20


@pytest.mark.parametrize("act", ["time.sleep(600)", BUSY_IN_C])
def test_stacks_of_ranks_that_live(agent: Open, act: str) -> None:
    run = agent()
    run.start(2, act)
    run.spawned()
    run.page(lambda row: row["page"][2] == 1 and row["still"] > 0.1)
    for _ in range(2):
        run.send(do="stacks")
        stacks = run.until("stacks", seconds=2)["stacks"]
        assert stacks.keys() == {"10", "11"}
        assert all('"doctor/smoke/onhost/rank.py", line 9 in run' in text for text in stacks.values())
        assert all(text.count("in run") == 1 for text in stacks.values())


def test_connections_of_ranks_that_broke(agent: Open) -> None:
    """One breaks that was made before a phase began; one is kept; one is made too late to count."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        act = (
            "import socket\n"
            f"first = socket.create_connection(('127.0.0.1', {port}))\n"
            f"second = socket.socket(socket.AF_INET6); second.connect(('::ffff:127.0.0.1', {port}))\n"
            "page.enter_phase('collectives'); time.sleep(0.5)\n"
            f"third = socket.create_connection(('127.0.0.1', {port}))\n"
            "say(ev='made', ends=[one.getsockname()[1] for one in (first, second, third)])\n"
            "time.sleep(600)"
        )
        run = agent()
        run.start(1, act)
        first, second, _ = (f"0100007F:{one:04X} 0100007F:{port:04X}" for one in run.event("made")["ends"])
        run.send(do="stacks")
        before = run.until("stacks")
        server.accept()[0].close()
        run.send(do="stacks")
        after = run.until("stacks")
    assert (before["kept"], before["broken"]) == (sorted([first, second]), [])
    assert (after["kept"], after["broken"]) == ([second], [first])


@cases
def test_stacks_of_a_stopped_rank(agent: Open, tmp_path: Path, spy: str | None, found: str) -> None:
    if spy:
        (tmp_path / "py-spy").write_text(spy)
        (tmp_path / "py-spy").chmod(0o755)
    run = agent(path=str(tmp_path))
    run.start()
    pid = run.spawned()["10"]
    run.page(lambda row: row["page"][2] == 1 and row["still"] > 0.1)
    os.kill(pid, signal.SIGSTOP)
    run.page(lambda row: row["state"] == "T")
    run.send(do="stacks")
    assert re.search(found, run.until("stacks", seconds=60)["stacks"]["10"])
    run.page(lambda row: row["state"] == "T")


def test_output_without_end_is_bounded(agent: Open) -> None:
    run = agent()
    run.start(1, "say(ev='begun')\nwhile True: os.write(1, b'flood ' * 20000)")
    run.event("begun")
    cpu, began = _cpu(run.agent_pid()), time.monotonic()
    assert _pages_in(run, 2.0) >= 2
    assert (_cpu(run.agent_pid()) - cpu) / (time.monotonic() - began) < 0.3
    os.kill(run.said("spawned")[0]["pids"]["10"], signal.SIGKILL)
    assert len(run.until("exit")["words"]) <= 2048


def _cpu(pid: int) -> float:
    times = psutil.Process(pid).cpu_times()
    return times.user + times.system


def test_lines_that_are_not_events_are_dropped(agent: Open) -> None:
    act = (
        """for line in (b"no json", b"[1]", b"\\xff\\xfe", b'{"ev": "half', b"{}{}", b"", b"[" * 99999):\n"""
        """    os.write(events, line + b"\\n")\n"""
        """os.write(events, b'{"ev": "good", "loss": NaN}\\n')\n"""
        """os.write(events, b"x" * 300000 + b"\\n")\n"""
        """say(ev="last")"""
    )
    run = agent()
    run.start(1, act)
    run.event("last")
    events = [said["event"] for said in run.said("event")]
    assert events == [{"ev": "phase", "phase": "spawned"}, {"ev": "good", "loss": None}, {"ev": "last"}]


def test_all_events_of_a_rank_come_before_its_exit(agent: Open) -> None:
    run = agent()
    run.start(1, "for n in range(5000): say(ev='n', n=n)\nprint('x' * 99)")
    assert run.until("exit")["words"] == "x" * 99 + "\n"
    assert [said["event"]["n"] for said in run.said("event")[1:]] == list(range(5000))


def test_through_a_transport() -> None:
    """Closing the session ends the run, which ends with its last line."""
    transport = LocalTransport()
    session = transport.open({"here": smoke_script(sys.executable)})
    heard = []
    for _ in range(9):
        event = session.receive(10)
        assert event is not None
        if isinstance(event, SessionEnd):
            break
        heard.append(event.text)
        if b'"ready"' in event.text:
            session.send("here", b'{"do":"stop"}')
    assert heard[-1] == LAST_LINE
    session.close()
    transport.close()


@pytest.mark.parametrize("started", [False, True])
def test_lines_that_are_not_commands_are_ignored(agent: Open, started: bool) -> None:
    run = agent()
    if started:
        run.start()
        run.spawned()
    hostile = (b"", b"\xff\0", b"stop", b"[]", b'"stop"', b'{"do": 5}', b'{"do": ["stop"]}', b"[" * 99_999)
    for line in (*hostile, b"{" * 3_000_000, b'{"do": "look", "id": "x"}', b'{"do": "beat", "lease": "x"}'):
        run.write(line)
    if not started:
        run.start()
    run.send(do="start", ranks="a second time")
    run.send(do="look", id=3)
    run.until("pages", lambda said: said["id"] == 3)


def test_an_agent_that_gets_no_cpu_does_not_count_the_time_as_a_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 0.02, 5.0, 5.02, 9.0])
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    still = Stillness()
    counted = []
    for moved in (False, False, True, False):
        counted.append(round(still.seconds(), 3))
        still.poll(moved, (5, True), 9.0)
    assert counted == [0.02, MOST, 0.02, MOST]
    assert (round(still.gap, 3), round(still.quiet, 3)) == (0.14, MOST)


STARVED = from_cases(__file__, "STARVED", str)


IN_A_THREAD = STARVED.replace(
    "os.sched_setscheduler",
    """
def compute():
    os.sched_setscheduler""",
).replace(
    """
say(ev="begins", hog=hog)
while True:
    pass
""",
    """
    while True:
        pass
import threading
thread = threading.Thread(target=compute)
thread.start()
say(ev="begins", hog=hog)
thread.join()
""",
)


@pytest.mark.parametrize("act", [STARVED, IN_A_THREAD], ids=["main thread", "autograd's thread"])
def test_a_rank_that_gets_no_processor_does_not_stand_still(agent: Open, act: str) -> None:
    """Beside a busy process on its only core, and with the lowest priority."""
    run = agent()
    run.start(
        2, act, env={"ACT_1": "page.enter_phase('train')\nwhile True:\n    time.sleep(0.01); page.mark()"}
    )
    run.event("begins")
    before = len(run.said("pages"))
    _pages_in(run, 2.5)
    starved = [
        row["still"] for said in run.said("pages")[before:] for row in said["ranks"] if row["rank"] == 10
    ]
    assert len(starved) > 3
    assert max(starved) - min(starved) < 0.5


def test_a_rank_that_never_ends_its_computing_stands_still(agent: Open) -> None:
    run = agent()
    run.start(1, "while True: pass")
    assert run.page(lambda row: row["still"] > 1.0, seconds=60)["quiet"] > 1.0


@cases
def test_waiting_for_a_processor_does_not_count(
    turns: list[tuple[float, float] | None], runnable: bool, counted: list[float]
) -> None:
    idleness = Idleness()
    assert [idleness.counted(0.1, each, runnable) for each in turns] == pytest.approx(counted)


def test_a_gap_belongs_to_one_phase_and_to_living_ranks() -> None:
    still = Stillness()
    first, later = (5, False), (5, True)  # the first step of the training, and those after it
    for phase, gap in ((first, 0.0), (first, 0.1), (later, 0.0), (later, 0.1)):
        still._looked -= 0.1
        still.seconds()
        still.poll(True, phase, 0.0)
        assert round(still.gap, 2) == gap
    still._looked -= 9
    still.seconds()
    still.poll(False, None, 9.0)
    assert still.quiet == 0
