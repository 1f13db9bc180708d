"""Ray reports the end of a process in the log of another one: the process that ended is named."""

from pathlib import Path

import pytest

from doctor.logs.model import Conclusion, LogOutcome
from tests.support.cases import from_cases
from tests.support.each import each
from tests.support.fault_logs import pasted

FIELDS = from_cases(__file__, "FIELDS", str)
DIED = "ray.exceptions.{error}: The actor died unexpectedly before finishing this task.\n"
CRASHED = from_cases(__file__, "CRASHED", str)


def headline(found: Conclusion) -> str:
    return found.charges[0].says if found.charges else ""


@each("error", ["RayActorError", "ActorDiedError"])
@each("name", ["", "\tname: WorkerDict_0:6\n"])
def test_a_dead_actor_is_named_and_only_suspected(error: str, name: str, tmp_path: Path) -> None:
    found = pasted(tmp_path, DIED.replace("{error}", error) + FIELDS.replace("{name}", name) + CRASHED)
    actor = "WorkerDict_0:6" if name else "RayTrainWorker"
    assert headline(found) == f"process 55131 on 10.0.0.2: a worker of Ray ended unexpectedly ({actor})"
    assert found.charges[0].confidence.value == "suspect"
    assert "memory" not in headline(found)


def test_the_raylet_that_reports_a_death_and_other_actors_are_not_it(tmp_path: Path) -> None:
    found = pasted(
        tmp_path,
        "(raylet) A worker died or was killed while executing a task by an unexpected system error. To "
        "troubleshoot the problem, check the logs for the dead worker. RayTask ID: ffff Worker ID: fead Node "
        "ID: 201f Worker IP address: 10.0.7.57 Worker port: 10046 Worker PID: 89513 Worker exit type: "
        "SYSTEM_ERROR Worker exit detail: Worker unexpectedly exits with a connection error code 2.\n"
        "(TorchTrainer pid=89392) Worker 0 has failed.\n",
    )
    assert headline(found) == "process 89513 on 10.0.7.57: a worker of Ray ended unexpectedly"


def test_the_host_of_an_actor_that_died_with_it_is_the_cause(tmp_path: Path) -> None:
    gone = "The actor is dead because its node has died. Node Id: 2c82aa\n"
    found = pasted(tmp_path, DIED.replace("{error}", "ActorDiedError") + FIELDS.replace("{name}", "") + gone)
    assert (found.outcome, found.charges[0].symptom) == (LogOutcome.NAMED, "ray-node-dead")
    assert "10.0.0.2" in headline(found)


def test_all_hosts_that_ray_lost_are_named(tmp_path: Path) -> None:
    line = (
        "The node with node id: 75b2{0} and {1}: 10.0.0.{0} {2}has been marked dead because the detector has "
        "missed too many heartbeats from it.\n"
    )
    others = (line.format(last, "ip", "") for last in (3, 4, 5))
    named = line.format(2, "address", "and node name: 10.0.0.2 ")
    found = pasted(tmp_path, line.format(1, "ip", ""), named, *others)
    assert all(f"10.0.0.{last}" in headline(found) for last in (1, 2, 3, 4, 5))


def test_a_task_killed_for_memory_is_named(tmp_path: Path) -> None:
    found = pasted(
        tmp_path,
        "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.\n"
        "Memory on the node (IP: 10.0.0.7, ID: 2c82aa) where the task (task ID: ffff, name=fit, pid=43408, "
        "memory used=203.72GB) was running was 243.1GB / 251.0GB (0.962273)\n",
    )
    assert found.charges[0].symptom == "ray-memory"
    assert "process 43408 on 10.0.0.7" in headline(found)


KILLS = from_cases(__file__, "KILLS", str)


@pytest.mark.parametrize(("counts", "symptom"), [((1, 0), "ray-memory"), ((0, 1), "ray-actor-died")])
def test_ray_counts_kills_for_memory_and_crashes(
    counts: tuple[int, int], symptom: str, tmp_path: Path
) -> None:
    found = pasted(tmp_path, KILLS.format(*counts))
    assert found.charges[0].symptom == symptom
    assert "10.0.0.7" in headline(found)


def test_an_exception_is_that_of_the_task_and_not_of_the_driver(tmp_path: Path) -> None:
    found = pasted(
        tmp_path,
        """(Rollout pid=2200) step 10
Traceback (most recent call last):
  File "/app/train.py", line 12, in <module>
    ray.get(refs)
ray.exceptions.RayTaskError(ModuleNotFoundError): ray::R.step() (pid=2201, ip=10.0.0.3, repr=<x>)
  File "/app/rollout.py", line 88, in step
    import absent
ModuleNotFoundError: No module named 'absent'
""",
    )
    assert headline(found).startswith("process 2201 on 10.0.0.3: ")
    assert headline(found).endswith("(absent)")


@pytest.mark.parametrize(("signal", "symptom"), [("SIGTERM", "ray-terminated"), ("SIGSEGV", "ray-crashed")])
def test_a_signal_to_a_process_of_ray(signal: str, symptom: str, tmp_path: Path) -> None:
    head = "[2026-11-20 18:36:49,345 E 15225 454245] logging.cc:317: "
    found = pasted(
        tmp_path,
        f"{head}*** {signal} received at time=1763640000 ***\n"
        f"{head}PC: @     0x7fff6d2df3be  (unknown)  __accept\n"
        f"{head}    @        0x10e31f994  (unknown)  absl::WriteFailureInfo()\n",
    )
    assert found.charges[0].symptom == symptom
    assert headline(found).startswith("process 15225: ")


def test_the_address_in_brackets_is_named(tmp_path: Path) -> None:
    line = (
        "(aWorkerDict_1:{0} WorkerDict pid=20{0}, ip=[2001:db8::{0}]) [W715 20:00:39.8429 socket.cpp:752] "
        "[c10d] The IPv6 network addresses of ([2001:db8::9], 59699) cannot be retrieved (gai error: -2 - "
        "Name or service not known).\n"
    )
    found = pasted(tmp_path, line.format(11) + line.format(12))
    assert (found.outcome, found.charges[0].symptom) == (LogOutcome.NAMED, "torch-address-brackets")
    assert headline(found).startswith("[2001:db8::9]: ")


def test_a_healthy_driver_is_silent(tmp_path: Path) -> None:
    found = pasted(
        tmp_path,
        """2026-11-20 10:00:00,123 INFO worker.py:1724 -- Connecting to Ray cluster at 10.0.0.1:6379
[2026-11-20 10:00:00,345 I 15225 454245] node_manager.cc:620: Sending Python GC request to 5 local workers.
(TrainWorker pid=2201, ip=10.0.0.3) step 10 loss 2.1
(raylet) Spilled 2000 MiB, 10 objects, write throughput 500 MiB/s.
(TrainWorker pid=2200) step 11 loss 2.0
(autoscaler +12s) Tip: use `ray status` to view detailed cluster status.
(raylet) [2026-11-20 10:00:01,345 E 812 812] (raylet) file_system_monitor.cc:105: /tmp/ray is over 95% full.
(TrainWorker pid=2200) step 12 loss 1.9
""",
    )
    assert (found.outcome, found.charges, found.odd) == (LogOutcome.CLEAN, (), ())


@each(
    "prefix", ["\x1b[36m(Trainer pid=2201, ip=10.0.0.3)\x1b[0m ", "[36m(Trainer pid=2201, ip=10.0.0.3)[0m "]
)
def test_a_coloured_prefix_names_the_writer(prefix: str, tmp_path: Path) -> None:
    found = pasted(tmp_path, f"{prefix}ModuleNotFoundError: No module named 'absent'\nstopped\n")
    assert headline(found).startswith("process 2201 on 10.0.0.3: ")


def test_the_innermost_prefix_names_the_writer(tmp_path: Path) -> None:
    prefix = "(EngineCore_DP0 pid=1769) (RayWorkerWrapper pid=274, ip=10.2.1.15) "
    found = pasted(tmp_path, f"{prefix}ModuleNotFoundError: No module named 'absent'\n")
    assert headline(found).startswith("process 274 on 10.2.1.15: ")


def test_vllm_says_that_its_workers_end_with_a_signal(tmp_path: Path) -> None:
    signal = (
        "[2026-11-20 18:36:49,345 E 152 454] logging.cc:317: *** SIGTERM received at time=1763640000 ***\n"
    )
    ends = (
        "INFO 11-20 00:53:54 [ray_distributed_executor.py:127] Shutting down Ray distributed executor. If "
        "you see error log from logging.cc regarding SIGTERM received, please ignore because this is the "
        "expected termination process in Ray.\n"
    )
    assert pasted(tmp_path, ends + signal).charges == ()
    assert pasted(tmp_path, signal).outcome is LogOutcome.UNKNOWN


def test_a_log_of_several_actors_is_not_that_of_the_only_rank_in_it(tmp_path: Path) -> None:
    found = pasted(
        tmp_path,
        "(WorkerDict pid=26103, ip=10.0.0.2) torch.OutOfMemoryError: CUDA out of memory. Tried to allocate "
        "2.00 GiB. GPU 3 has a total capacity of 79.10 GiB of which 1.00 GiB is free.\n"
        "(WorkerDict pid=26110) [rank7]:[W1120 01:13:20.8865 TCPStore.cpp:125] [c10d] recvValue failed on "
        "SocketImpl(fd=81, addr=[node1]:1, remote=[node1]:2): Connection reset by peer\n",
    )
    assert found.charges[0].symptom == "torch-cuda-memory"
    assert headline(found).startswith("device 3 of 10.0.0.2: ")
