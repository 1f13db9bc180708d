"""Examinations from inside containers: which side lacks resources, what fixes it, and nothing left behind."""

import signal
import sys
import time

import pytest

from tests.lab import Snapshot
from tests.lab.container import Container, Memory
from tests.support.docks import BOTH, INSIDE, PODS, PYTHON, Dock, dock, docks, engine
from tests.support.hang.named import culprits
from tests.support.hang.ranks import JOB

__all__ = ["dock", "docks", "engine"]

MB = 1 << 20
KILL_CLIENT = "pkill -KILL -f '^[^ ]*python[^ ]* .*/docker exec'"
NARROW = ("--exam", "host", "--mesh", "none")


def commands(found: dict[str, object]) -> str:
    remedy = found["remedy"]
    assert isinstance(remedy, dict)
    return "\n".join(remedy["commands"])


def test_the_lab_really_enters_other_namespaces(dock: Dock) -> None:
    """A container differs from its host in the examined properties."""
    pod = dock.engine.run("node1", "pod1", net="pod", shm="64m", sysctls={"net.core.somaxconn": 77})
    host = dock.lab["node1"]
    look = "df -k /dev/shm | tail -1 | awk '{print $2}'; hostname; cat /proc/sys/net/core/somaxconn; ls /proc"
    size, name, somaxconn, *inside = pod.ask(look).splitlines()
    theirs = host.ask(look).stdout.split()
    assert (size, name, somaxconn) == ("65536", "pod1", "77")
    assert theirs[0] != size
    assert theirs[1:3] == ["node1", host.ask("cat /proc/sys/net/core/somaxconn").stdout.strip()]
    assert theirs[2] != "77"
    numbers = [each for each in inside if each.isdigit()]
    assert len(numbers) <= 4, "PID 1, the shell and what it asks"
    assert pod.ask("cat /proc/1/comm") == "sleep"
    entered = host.ask("docker exec -i pod1 sh -c 'hostname; cat'", stdin="said\n")
    assert entered.stdout == "pod1\nsaid\n"


def test_a_healthy_container(dock: Dock) -> None:
    """It shares the host's network. Its engine is slow, which does not make any clock wrong."""
    for host in ("node1", "node2"):
        container = dock.engine.run(host, "train", shm="1g")
        dock.engine.change(container, delay=1.6 if host == "node2" else 0)
    before = {each.name + each.host.name: each.snapshot() for each in dock.engine.containers}
    seen = dock("check", BOTH, *INSIDE)
    assert seen.trouble == {}, seen.text
    assert (seen.code, seen.report["verdict"]) == (0, "healthy")
    passed = {each["check"] for each in seen.report["results"] if each["status"] == "pass"}
    assert {"clock-skew", "port-unreachable", "shm-small", "data-address-duplicate"} <= passed
    for each in dock.engine.containers:
        assert not each.leftovers(before[each.name + each.host.name])
        # PID 1 reaps no process, so the probe must wait for the processes that it starts.
        dock.lab["node1"].await_that(lambda each=each: each.zombies == 0, "reaped probe")  # type: ignore[misc]


def test_an_older_image(dock: Dock) -> None:
    for host in dock.lab.names:
        dock.engine.run(host, "train", shm="1g")
    assert dock("check", BOTH, *INSIDE, *NARROW).trouble == {}
    dock.engine.made_from(dock.lab["node2"], "2" * 64)
    try:
        seen = dock("check", BOTH, *INSIDE, *NARROW)
    finally:
        dock.engine.made_from(dock.lab["node2"], "1" * 64)
    assert seen.code == 0
    (found,) = seen.trouble.values()
    sides = f"{'1' * 12} on node1; {'2' * 12} on node2"
    assert (found["check"], found["actual"], found["confidence"]) == ("digest-differs", sides, "suspect")


@pytest.mark.skipif(not Memory.possible(), reason="this machine does not let us limit memory")
def test_the_container_has_too_little_and_the_host_enough(dock: Dock) -> None:
    for host in ("node1", "node2"):
        short = host == "node2"
        dock.engine.run(host, "train", shm="64m" if short else "1g", memory=200 * MB if short else None)
    seen = dock("check", BOTH, *INSIDE, "--expect", "memory_mb_per_rank=100", *NARROW)
    assert seen.code == 1
    assert seen.trouble.keys() == {"shm-small", "memory-low"}, seen.text
    shm, memory = seen.trouble["shm-small"], seen.trouble["memory-low"]
    for found in (shm, memory):
        assert (found["hosts"], found["view"]) == (["node2"], "container")
    assert "--shm-size=" in commands(shm)
    assert "medium Memory" in commands(shm)
    assert "limit" in memory["summary"]
    assert "the host itself has enough" in memory["actual"]
    assert "--memory=" in commands(memory)
    assert "seen from inside the container" in seen.text
    assert dock("check", BOTH, "--expect", "memory_mb_per_rank=100", *NARROW).code == 0


def test_a_host_that_has_too_little_is_found_from_its_container_too(dock: Dock) -> None:
    """Resources that containers share with their host belong to the host, and are fixed there."""
    host = dock.lab["node2"]
    dock.engine.run("node2", "train", shm="1g")
    somaxconn = host.ask("cat /proc/sys/net/core/somaxconn").stdout.strip()
    host.sysctl("net.core.somaxconn", 1)
    try:
        seen = dock("check", "node2", *INSIDE, "--expect", "memory_mb_per_rank=9000000", *NARROW)
    finally:
        host.sysctl("net.core.somaxconn", somaxconn)
    assert seen.trouble.keys() == {"somaxconn-low", "memory-low"}, seen.text
    queue, memory = seen.trouble["somaxconn-low"], seen.trouble["memory-low"]
    assert (queue["hosts"], queue["view"], memory["view"]) == (["node2"], "host", "host")
    assert commands(queue).startswith("# On the host, outside of the container:")
    assert "sudo sysctl -w net.core.somaxconn=" in commands(queue)
    assert "limit" not in memory["summary"]
    assert "seen from inside the container" in seen.text


def test_a_container_has_settings_of_its_own_network(dock: Dock) -> None:
    for number in (1, 2):
        settings = {"net.core.somaxconn": 2} if number == 1 else None
        dock.engine.run(f"node{number}", f"pod{number}", net="pod", shm="1g", sysctls=settings)
    seen = dock("check", *PODS, "--ranks-per-host", "2")
    assert seen.trouble.keys() == {"somaxconn-low"}, seen.text
    found = seen.trouble["somaxconn-low"]
    assert (found["hosts"], found["view"], found["status"]) == (["pod1"], "container", "fail")
    assert "--sysctl net.core.somaxconn=" in commands(found)
    assert "sudo" not in commands(found)
    reached = [each for each in seen.report["results"] if each["check"] == "port-unreachable"]
    assert [each["status"] for each in reached] == ["pass"], "pods reach each other"


def test_containers_on_the_bridge_of_each_host(dock: Dock) -> None:
    for host in ("node1", "node2"):
        dock.engine.run(host, "train", net="bridge", shm="1g")
    seen = dock("check", BOTH, *INSIDE)
    assert seen.trouble.keys() == {"data-address-duplicate"}, seen.text
    found = seen.trouble["data-address-duplicate"]
    assert (found["hosts"], found["status"]) == (["node1", "node2"], "fail")
    assert "172.17.0.2" in found["actual"]
    assert "--network=host" in commands(found)
    assert seen.code == 1


def test_an_engine_that_refuses(dock: Dock) -> None:
    """The refused entry is reported as the fault, with a suitable command to type."""
    dock.engine.run("node1", "train", shm="1g")
    paused = dock.engine.run("node2", "train", shm="1g")
    dock.engine.change(
        paused,
        refuses="Error response from daemon: Container train is paused, unpause the container before exec",
    )
    seen = dock("check", BOTH, *INSIDE, *NARROW)
    assert seen.trouble.keys() == {"host-unreachable"}
    found = seen.trouble["host-unreachable"]
    assert found["hosts"] == ["node2"]
    assert found["summary"] == "'docker exec -i train' did not enter: the container train is paused"
    assert f"ssh -F {dock.lab.ssh_config} node2 'docker unpause train'" in commands(found).splitlines()
    assert seen.code == 1
    dock.engine.pods(dock.folder / "bin")
    seen = dock("check", "train", "--enter", "kubectl exec -i nosuch --", *NARROW)
    found = seen.trouble["host-unreachable"]
    assert "there is no pod nosuch" in found["summary"]
    assert "kubectl get pods -A -o wide" in commands(found)


def ended(container: Container, before: Snapshot, limit: float = 15) -> None:
    until = time.monotonic() + limit
    while left := container.leftovers(before):
        assert time.monotonic() < until, f"{container.name}: {left}"
        time.sleep(0.05)


def await_running(container: Container, word: str, seconds: float = 30) -> None:
    container.host.await_that(
        lambda: any(word in each.command for each in container.snapshot().processes), f"{word} in it", seconds
    )


@pytest.mark.parametrize("who", ["doctor", "docker"])
def test_nothing_stays_in_a_container_whichever_process_is_killed(who: str, dock: Dock) -> None:
    """The engine does not end its processes when its client dies, so the probe has to do so itself."""
    container = dock.engine.run("node1", "train", shm="1g")
    host = dock.lab["node1"]
    host.program("df", "exec sleep 4711")
    before = container.snapshot()
    run = dock.lab.popen(dock.argv("check", "node1", *INSIDE, *NARROW))
    await_running(container, "sleep 4711")
    if who == "doctor":
        run.send_signal(signal.SIGKILL)
    else:
        host.do(KILL_CLIENT)
    run.communicate(timeout=60)
    ended(container, before)
    host.do('mv /usr/lib/real/df "$(command -v df)"')


def test_ranks_train_in_pods_and_leave_nothing(dock: Dock) -> None:
    for number in (1, 2):
        dock.engine.run(f"node{number}", f"pod{number}", net="pod", shm="1g")
    before = [each.snapshot() for each in dock.engine.containers]
    seen = dock("smoke", *PODS, *PYTHON, "--ranks-per-host", "1", "--steps", "12")
    assert seen.trouble == {}, seen.text
    assert (seen.code, seen.report["smoke"]["status"]) == (0, "pass")
    assert {each["host"] for each in seen.report["smoke"]["ranks"]} == {"pod1", "pod2"}
    for each, was in zip(dock.engine.containers, before, strict=True):
        ended(each, was)


@pytest.mark.long
def test_every_command_enters_the_containers(dock: Dock) -> None:
    ranks = [dock.engine.run(host, "train", shm="1g") for host in ("node1", "node2")]
    for command in ("smoke", "preflight"):
        seen = dock(command, BOTH, *INSIDE, *PYTHON, "--ranks-per-host", "1", "--steps", "4")
        assert seen.code == 0, seen.text
        assert len(seen.report["smoke"]["ranks"]) == 2

    def doctor(*words: str) -> str:
        done = dock.lab.doctor(*words, env=dock.environment)
        return " ".join((done.stdout + done.stderr).split())

    assert "2 hosts reported" in doctor("facts", BOTH, *INSIDE)
    ssh = ("--ssh-config", str(dock.lab.ssh_config))
    begun = doctor("run", BOTH, *INSIDE, *ssh, "--exam", "host", "--no-smoke", "--", "echo", "it has begun")
    assert "it has begun" in begun
    ranks[1].ask("echo 'RuntimeError: the disk is gone' >/tmp/train.log")
    assert "RuntimeError: the disk is gone" in doctor("logs", BOTH, *INSIDE, "--path", "/tmp/train.log")
    start = (
        "mkdir /dev/shm/job; mkfifo /dev/shm/job/fifo; export RANK={} WORLD_SIZE=2 LOCAL_RANK=0 "
        f"MASTER_ADDR={dock.lab['node1'].address} MASTER_PORT=29658 FOLDER=/dev/shm/job OMP_NUM_THREADS=1; "
        f"setsid {sys.executable} {JOB} </dev/null >/dev/shm/job/said 2>&1 & echo $!"
    )
    pids = [each.ask(start.format(rank)) for rank, each in enumerate(ranks)]
    steps = "cat /dev/shm/job/step.0 2>/dev/null"
    dock.lab["node1"].await_that(lambda: int(ranks[0].ask(steps) or 0) >= 3, "steps", 90)
    slow = dock("slow", BOTH, *INSIDE, "--for", "4")
    assert (slow.code in (0, 3), slow.report["slow"]["job"]["ranks"]) == (True, 2), slow.text
    ranks[1].ask(f"kill -STOP {pids[1]}")
    hang = dock("hang", BOTH, *INSIDE)
    (culprit,) = culprits(hang.report)
    assert (culprit["rank"], culprit["host"], culprit["cause"]) == (1, "node2", "stopped")


@pytest.mark.long
def test_a_log_is_proved_in_containers_and_devices_are_asked_for(dock: Dock) -> None:
    for host in ("node1", "node2"):
        dock.engine.run(host, "train", shm="16m" if host == "node2" else "1g")
    log = dock.folder / "train.log"
    log.write_text("RuntimeError: unable to write to file </torch_1_2_3>: No space left on device (28)\n")
    ssh = ("--ssh-config", str(dock.lab.ssh_config))
    proved = dock.lab.doctor("explain", str(log), "--check", BOTH, *INSIDE, *ssh, env=dock.environment)
    assert proved.returncode == 1, proved.stdout + proved.stderr
    assert "proved: shm-small fails on node2" in proved.stdout
    table = dock.lab.doctor("ranktable", "make", BOTH, *INSIDE, env=dock.environment)
    assert table.returncode == 3, "the NPUs may be given to other containers"
    assert "no rank table was written" in table.stderr


@pytest.mark.long
@pytest.mark.parametrize("who", ["doctor", "docker"])
def test_a_smoke_run_that_is_killed_leaves_nothing(who: str, dock: Dock) -> None:
    container = dock.engine.run("node1", "train", shm="1g")
    before = container.snapshot()
    run = dock.lab.popen(
        dock.argv("smoke", "node1", *INSIDE, *PYTHON, "--ranks-per-host", "2", "--steps", "1000")
    )
    await_running(container, "forkserver", 60)
    if who == "doctor":
        run.send_signal(signal.SIGKILL)
    else:
        container.host.do(KILL_CLIENT)
    run.communicate(timeout=90)
    ended(container, before, 30)
