"""Kernel logs: events belong to processes and devices. Those of other programs and earlier runs are not the
job's.
"""

from pathlib import Path

from doctor.logs.model import Conclusion, LogOutcome
from doctor.model import Confidence
from tests.support.cases import cases, from_cases
from tests.support.fault_logs import concluded, written

SSHD = "[1000.000001] sshd[900]: segfault at 0 ip 7f7c sp 7f7c error 4 in libc.so.6[7f7c7a+d3d]"
TOOL = "[{0}.000001] mytool[901]: segfault at 0 ip 7f7c sp 7f7c error 4 in mytool[7f7c7a+d3d]"
RANK = "[{0}.000001] python3[{1}]: segfault at 0 ip 7f7c sp 7f7c error 4 in libnccl.so.2[7f+d3]"
KILL = from_cases(__file__, "KILL", tuple[str, ...])
XID = "[{0}.000001] NVRM: Xid (PCI:0000:{2}:00): {1}"


def causes(found: Conclusion) -> list[str]:
    return [each.says for each in found.charges if each.because is None]


def test_a_crash_of_a_service_is_not_a_cause(tmp_path: Path) -> None:
    found = written(tmp_path, SSHD)
    assert (found.outcome, found.charges) == (LogOutcome.CLEAN, ())
    assert any("other programs" in each and "sshd" in each for each in found.open)


def test_the_trainings_process_comes_before_another_program(tmp_path: Path) -> None:
    said = causes(written(tmp_path, TOOL.format(90_000), RANK.format(90_010, 4242)))
    assert len(said) == 1
    assert said[0].startswith("process 4242: ")
    assert "libnccl.so.2" in said[0]


def test_a_program_alone_may_be_the_job(tmp_path: Path) -> None:
    assert causes(written(tmp_path, TOOL.format(90_000)))[0].startswith("process 901: ")


@cases
def test_the_last_event_comes_first(old: int, new: int, tmp_path: Path) -> None:
    first = [line.format(old, 100, "python3") for line in KILL]
    last = [line.format(new, 200, "python3") for line in KILL]
    assert causes(written(tmp_path, *first, *last)) == [
        "process 200 (python3) was killed by the kernel for lack of memory (oom-kill)"
    ]


def test_a_kill_of_another_program_accuses_nobody(tmp_path: Path) -> None:
    """The line that announces it does not name the process."""
    kill = [line.format(500, 77, "chrome") for line in KILL]
    assert written(tmp_path, *kill).outcome is LogOutcome.CLEAN
    java = [line.format(499, 78, "java") for line in KILL]
    own = [line.format(501, 79, "python3") for line in KILL]
    assert causes(written(tmp_path, *java, *own)) == [
        "process 79 (python3) was killed by the kernel for lack of memory (oom-kill)"
    ]


def test_a_kill_that_only_the_end_of_a_loader_confirms_is_the_jobs(tmp_path: Path) -> None:
    kill = "Jan  1 10:00:03 node1 kernel: Memory cgroup out of memory: Killed process 42 (python) total-vm:9"
    (tmp_path / "kern.log").write_text(f"{kill}\n")
    (tmp_path / "train.log").write_text(
        "2026-01-01 10:00:01 step 1 loss 2.0\n"
        "RuntimeError: DataLoader worker (pid 42) is killed by signal: Killed. \n"
    )
    (said,) = causes(concluded(tmp_path))
    assert said.startswith("process 42 on node1 (python) was killed by the kernel for lack of memory")


@cases
def test_what_an_earlier_boot_met_is_not_the_jobs(kernel: str, job: str, named: bool, tmp_path: Path) -> None:
    (tmp_path / "node1").mkdir()
    (tmp_path / "node1" / "kern.log").write_text(kernel)
    (tmp_path / "node1" / "train.log").write_text(job)
    assert any("fell off the bus" in each for each in causes(concluded(tmp_path))) is named


def test_events_of_one_moment_all_count(tmp_path: Path) -> None:
    said = causes(written(tmp_path, RANK.format(100, 11), RANK.format(101, 12)))
    assert "process 11 and process 12: " in said[0]


def test_a_kill_of_a_rank_counts_whatever_it_is_called(tmp_path: Path) -> None:
    kill = [line.format(500, 77, "lmp_gpu") for line in KILL]
    assert any(
        "process 77 (lmp_gpu) was killed" in each
        for each in causes(written(tmp_path, RANK.format(400, 5), *kill))
    )


def test_a_process_that_met_a_broken_gpu_is_not_blamed(tmp_path: Path) -> None:
    found = written(
        tmp_path, XID.format(10, "63, pid=1850, Row Remapper: New row marked for remapping", "10")
    )
    assert causes(found) == ["a GPU marked bad cells of its memory to be replaced (PCI 0000:10:00, Xid 63)"]
    assert found.charges[0].who == ()


def test_all_devices_are_named(tmp_path: Path) -> None:
    lines = [XID.format(10, "79, GPU has fallen off the bus.", bus) for bus in ("1a", "1b", "3c")]
    assert causes(written(tmp_path, *lines)) == [
        "a GPU fell off the bus (PCI 0000:1a:00, 0000:1b:00, 0000:3c:00)"
    ]


def test_the_xid_that_a_later_one_names_is_the_cause(tmp_path: Path) -> None:
    gone = "45, pid=1, name=python3, Ch 00000001 caused by previous Xid {0}"
    found = written(tmp_path, XID.format(10, gone.format(145), "ed"), XID.format(11, gone.format(149), "dc"))
    first = next(each for each in found.charges if each.because is None)
    assert (first.symptom, "(PCI 0000:dc:00, Xid 149)" in first.says) == ("gpu-xid-previous-link", True)
    plain = written(tmp_path, XID.format(10, "45, pid=1, name=python3, Ch 00000001", "ed"))
    assert plain.charges[0].symptom == "gpu-xid-45"


def test_a_reset_that_the_driver_asks_for_is_a_consequence(tmp_path: Path) -> None:
    asked = "154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)"
    found = written(
        tmp_path, XID.format(10, "79, GPU has fallen off the bus.", "02"), XID.format(11, asked, "02"),
        XID.format(11, asked, "01"),
    )  # fmt: skip
    assert causes(found) == ["a GPU fell off the bus (PCI 0000:02:00)"]
    better = XID.format(
        11, "154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)", "02"
    )
    assert written(tmp_path, better).outcome is LogOutcome.CLEAN


def test_page_faults_of_amd_gpus_name_gpus_and_process(tmp_path: Path) -> None:
    fault = (
        "[50.000001] amdgpu 0000:{0}:00.0: amdgpu: [gfxhub] page fault (src_id:0 ring:24 vmid:8 pasid:32775)"
    )
    of = "[50.000002] amdgpu 0000:{0}:00.0: amdgpu:  for process python3 pid 4242 thread python3 pid 4242)"
    said = causes(written(tmp_path, fault.format("c1"), of.format("c1"), fault.format("c6")))
    assert said[0].startswith("process 4242: ")
    assert "0000:c1:00.0 and 0000:c6:00.0" in said[0]
    start = "[4.123456] amdgpu 0000:c1:00.0: amdgpu: VM size is 262144 GB, 4 levels, block size is 9-bit"
    assert written(tmp_path, start).outcome is LogOutcome.CLEAN


def test_the_gsp_of_a_gpu_is_named_by_its_number(tmp_path: Path) -> None:
    line = "[24.302465] NVRM: GPU6 _kgspIsHeartbeatTimedOut: Heartbeat timed out, currentTimeMs 812751949"
    assert "(GPU 6)" in causes(written(tmp_path, line))[0]


TRACE = from_cases(__file__, "TRACE", tuple[str, ...])


@cases
def test_a_call_trace_names_the_file_system_or_driver(call: str, module: str, tmp_path: Path) -> None:
    said = causes(written(tmp_path, *(line.format(call, module) for line in TRACE)))
    assert said[0].startswith("process 4242: a process waits in the kernel for longer than two minutes ")
    assert said[0].endswith(f"(python3, in {call}, module {module})")


def test_a_port_that_failed_names_the_gpu_behind_it(tmp_path: Path) -> None:
    port = "[9.000001] pcieport 0000:00:02.0: PCIe Bus Error: severity=Uncorrected (Fatal), id=0010"
    said = causes(written(tmp_path, port, XID.format(10, "79, GPU has fallen off the bus.", "02")))
    assert len(said) == 1
    assert "(PCI 0000:00:02.0); then a GPU fell off the bus (PCI 0000:02:00)" in said[0]


OWN_LIMIT = from_cases(__file__, "OWN_LIMIT", tuple[str, ...])


def test_the_limit_of_another_container_is_no_certain_cause(tmp_path: Path) -> None:
    found = written(tmp_path, *(line.format("mytool", 77) for line in OWN_LIMIT))
    assert found.charges[0].confidence is Confidence.SUSPECT
    assert "its own container" in found.charges[0].how[0]
    own = written(tmp_path, *(line.format("python3", 77) for line in OWN_LIMIT))
    assert own.charges[0].confidence is Confidence.STRONG


def test_a_service_in_its_own_container_is_not_blamed_for_the_end_of_a_job(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("step 1 loss 2.1\nERROR giving up: the data server did not answer\n")
    (tmp_path / "dmesg.txt").write_text("\n".join(line.format("nginx", 77) for line in OWN_LIMIT) + "\n")
    found = concluded(tmp_path)
    assert (found.outcome, found.charges) == (LogOutcome.UNKNOWN, ())
    assert any("(nginx)" in each for each in found.open)


def test_a_gpu_that_is_lost_is_why_a_kernel_of_cuda_broke(tmp_path: Path) -> None:
    """The log of the kernel names no host, and ranks that only waited wrote beside the one that broke."""
    watchdog = "ProcessGroupNCCL.cpp:632] [Rank {0}] Watchdog caught collective operation timeout: "
    watchdog += "WorkNCCL(SeqNum=9, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600024 milliseconds\n"
    broke = "terminated with exception: CUDA error: unspecified launch failure\n"
    (tmp_path / "h100-19.log").write_text(
        "30: [rank30]:[E412 16:20:09.774 ProcessGroupNCCL.cpp:1895] [Rank 30] Process group watchdog thread "
        + broke
        + "".join(f"{n}: [rank{n}]:[E412 16:30:11.242 {watchdog.format(n)}" for n in (24, 25))
    )
    lost = "[Sat Apr 12 16:19:58 2025] NVRM: Xid (PCI:0000:d9:00): 79, GPU has fallen off the bus.\n"
    (tmp_path / "dmesg-h100-19.txt").write_text(lost)
    said = concluded(tmp_path)
    assert [each.symptom for each in said.charges if each.because is None] == ["gpu-xid-79"]
    (tmp_path / "dmesg-h100-19.txt").unlink()
    said = concluded(tmp_path)
    assert [each.symptom for each in said.charges if each.because is None] == ["torch-cuda-launch"]
    assert [each.rank for each in said.charges[0].who] == [30]
