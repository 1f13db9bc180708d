"""Real ranks over gloo on this machine: the evidence shows what each rank does, and no rank is disturbed."""

import re
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from msgspec.structs import replace

from doctor.live.evidence import HostEvidence, JobMember
from doctor.live.onhost import proc
from doctor.live.onhost.look import MOST_BETWEEN
from doctor.live.sight import HostsToSee, see
from doctor.model import Host
from doctor.transport.local import LocalTransport
from tests.support.hang.known import KNOWN
from tests.support.hang.ranks import RunningJob, make_job

__all__ = ["make_job"]

pytestmark = pytest.mark.slow


def seen(job: RunningJob, apart: float = 1.0) -> HostEvidence:
    """The evidence about this job alone, because others may run on the machine."""
    transport = LocalTransport()
    try:
        sight = see(HostsToSee([Host("here", "localhost")], transport), apart)
    finally:
        transport.close()
    assert not sight.evidence.unreached
    (host,) = sight.evidence.hosts
    return replace(host, members=tuple(m for m in host.members if m.master.endswith(f":{job.port}")))


def ranks(host: HostEvidence) -> dict[int, JobMember]:
    return {member.rank: member for member in host.members if member.rank is not None}


def innermost(member: JobMember) -> list[tuple[str, str]]:
    """The function and line of the user's code in the main thread, in the second look."""
    assert member.b
    (main,) = [thread for thread in member.b.python if thread.tid == member.pid]
    return [(frame.name, frame.source) for frame in main.frames if frame.file.endswith("hang/job.py")]


@pytest.mark.parametrize("mode", [0o755, 0o4755, 0o2755])
def test_what_runs_with_rights_of_its_file_is_no_rank_of_their_owner(mode: int, tmp_path: Path) -> None:
    """Any user may have started it and set its variables."""
    program = tmp_path / "python"
    shutil.copy(shutil.which("sleep") or "/bin/sleep", program)
    program.chmod(mode)
    process = subprocess.Popen([program, "1000"], env={"RANK": "1", "WORLD_SIZE": "2"})
    try:
        while not Path(f"/proc/{process.pid}/environ").read_bytes():
            time.sleep(0.01)
        row = proc.row((process.pid, True), KNOWN.names)
        assert row
        assert bool(row["env"]) == (mode == 0o755)
    finally:
        process.kill()
        process.wait()


@pytest.mark.long
def test_a_healthy_job_is_seen_and_goes_on(make_job: Callable[..., RunningJob]) -> None:
    job = make_job(FAULT="")
    job.runs()
    before, files = [job.step(rank) for rank in range(3)], set(Path("/tmp").iterdir())
    beside = {process.pid for process in psutil.Process().children(recursive=True)}
    host = seen(job)
    found = ranks(host)
    assert sorted(found) == [0, 1, 2]
    assert len(host.members) == 3
    assert {m.pid for m in found.values()} == set(job.pids)
    assert {(m.world, m.job, m.master) for m in found.values()} == {
        (3, f"127.0.0.1:{job.port}", f"127.0.0.1:{job.port}")
    }
    assert all("[hidden]" in m.command and "swordfish" not in m.command for m in found.values())
    assert "swordfish" not in str(host)
    for member in found.values():
        assert member.a
        assert member.b
        names = {thread.name for thread in member.b.threads}
        assert {"gloo_tcp_loop", "pt_gloo_runloop"} <= names
        moved = sum(c.received for c in member.b.connections) - sum(c.received for c in member.a.connections)
        assert moved > 0
        steps = [t.step for t in member.b.python if t.tid == member.pid]
        assert steps != [None]
    assert host.stacks.startswith("py-spy ")
    assert host.stacks.endswith(", brought")
    assert host.ages
    assert 0.9 < host.apart < 10.0
    time.sleep(0.5)
    assert all(job.step(rank) > before[rank] + 10 for rank in range(3)), "the job goes on"
    for pid in job.pids:
        assert re.search(r"TracerPid:\t0\n", Path(f"/proc/{pid}/status").read_text())
        assert not psutil.Process(pid).children()
    assert not [each for each in set(Path("/tmp").iterdir()) - files if "spy" in each.name]
    mine = psutil.Process().children(recursive=True)
    assert {process.pid for process in mine} <= beside | set(job.pids), "nothing of the run is left"


FAULTS = [
    pytest.param("sleep", "S", "compute", "time.sleep(1000)", marks=pytest.mark.long),
    ("lock", "S", "wait_for_lock", "lock.acquire()"),
    pytest.param("stop", "T", "compute", "os.kill(os.getpid(), signal.SIGSTOP)", marks=pytest.mark.long),
    pytest.param("fifo", "S", "read_shard", 'return (FOLDER / "fifo").read_text()', marks=pytest.mark.long),
    pytest.param("spin", "R", "compute", "", marks=pytest.mark.long),
]


@pytest.mark.parametrize(("fault", "state", "where", "line"), FAULTS)
def test_a_rank_that_stands_still_is_seen(
    fault: str, state: str, where: str, line: str, make_job: Callable[..., RunningJob]
) -> None:
    job = make_job(FAULT=fault)
    job.hangs()
    job.until(lambda: [job.step(rank, "shares") for rank in (0, 2)] == [5, 5])
    found = ranks(seen(job))
    victim = found[1]
    assert victim.a
    assert victim.b
    assert victim.b.state == state
    name, source = innermost(victim)[0]
    assert name == where
    assert not line or source == line
    for number in (0, 2):
        assert innermost(found[number])[0] == ("share", "dist.all_reduce(value)")
        main = next(t for t in found[number].b.python if t.tid == found[number].pid)  # type: ignore[union-attr]
        assert main.step == 5
        ages = [c.last_received for c in found[number].b.connections]  # type: ignore[union-attr]
        assert max(ages) > 1000
    assert (job.ranks[1].poll(), psutil.Process(job.ranks[1].pid).status()) == (
        None,
        {"T": "stopped", "R": "running"}.get(state, "sleeping"),
    )


def test_the_worker_of_a_loader_is_a_helper(make_job: Callable[..., RunningJob]) -> None:
    job = make_job(world=2, FAULT="loader")
    job.hangs()
    host = seen(job)
    (worker,) = [m for m in host.members if m.helps == job.pids[1]]
    assert worker.rank is None
    assert innermost(worker)[0] == ("read_shard", 'return (FOLDER / "fifo").read_text()')
    assert any("partner" in thread.waits for thread in worker.b.threads)  # type: ignore[union-attr]


def test_far_apart_looks_have_others_between(make_job: Callable[..., RunningJob]) -> None:
    job = make_job(world=2, FAULT="sleep")
    job.hangs()
    host = seen(job, apart=8.0)
    for member in host.members:
        assert 1 <= len(member.between) <= MOST_BETWEEN
        for each in member.between:
            assert (each.connections, each.files, each.state) == ((), (), "S")
            assert {thread.name for thread in each.threads} >= {"gloo_tcp_loop"}
            assert any(frame.name == "main" for thread in each.python for frame in thread.frames)
    assert "swordfish" not in str(host)


@pytest.mark.skipif(
    "se.exec_start" not in proc.lenient("/proc/self/sched"),
    reason="the kernel does not say when a thread ran",
)
def test_the_kernel_says_since_when_a_thread_sleeps() -> None:
    with subprocess.Popen(["sleep", "60"]) as asleep:
        try:
            start = proc.row((asleep.pid, False))["start"]  # type: ignore[index]
            until = time.monotonic() + 30
            looks = [proc.seen((asleep.pid, start, False, False)) for _ in range(2)]
            while looks[-1]["threads"][0].get("slept", 0.0) <= looks[0]["threads"][0].get("slept", 0.0):
                assert time.monotonic() < until, "it sleeps longer and longer"
                time.sleep(0.05)
                looks.append(proc.seen((asleep.pid, start, False, False)))
        finally:
            asleep.kill()


def test_threads_of_groups_and_of_rpc_show_a_rank() -> None:
    named = ("gloo_tcp_loop", "pt_gloo_runloop", "pt_nccl_watchdg", "TP_UV_loop", "TP_SHM_reactor")
    assert all(map(proc.GROUPS.match, named))
    assert not any(map(proc.GROUPS.match, ("python", "pt_data_worker", "pt_tcpstore_uv", "jemalloc_bg_thd")))
