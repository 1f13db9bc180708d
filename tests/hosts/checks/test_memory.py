"""Memory and disk, each fault alone on one host."""

import pytest

from tests.lab import Host, Lab
from tests.support.batches import batches, prove_each
from tests.support.faults import ALONE, Examiner, Fault, assert_healthy, prove


def stale_segments(host: Host) -> None:
    """Leftovers of an earlier job fill the shared memory."""
    host.shm("256m")
    host.fill("/dev/shm/nccl-Zk3x9a", "180m")
    host.fill("/dev/shm/torch_123_4", "20m")


def no_shm(host: Host) -> None:
    host.do("umount /dev/shm; rmdir /dev/shm")


def free_memory(megabytes: int) -> str:
    return f"MemTotal: 16384000 kB\nMemFree: 90000 kB\nMemAvailable: {megabytes * 1024} kB\n"


def nearly_full_tmp(host: Host) -> None:
    host.resize("/tmp", "64m")
    host.fill("/tmp/core.4711", "40m")


FAULTS = {
    "Docker's shm": Fault(
        "shm-small",
        lambda host: host.shm("64m"),
        says=("Docker's default size", r"80 MB for 2 ranks \| 64 MB", "shm-size=1024m"),
    ),
    "small shm": Fault(
        "shm-small", lambda host: host.shm("72m"), says=(r"too small for the ranks on this host \|", "72 MB")
    ),
    "no shm": Fault("shm-small", no_shm, says=("there is no /dev/shm",)),
    "full shm": Fault(
        "shm-full",
        stale_segments,
        says=(r"nccl-Zk3x9a \(180 MB, root\)", "56 MB free of 256 MB", "fuser -v /dev/shm/nccl-Zk3x9a"),
    ),
    "little memory": Fault(
        "memory-low",
        lambda host: host.shadow("/proc/meminfo", free_memory(700)),
        "warn",
        (r"1024 MB for 2 ranks \| 700 MB of 16000 MB",),
    ),
    "no memory": Fault(
        "memory-low", lambda host: host.shadow("/proc/meminfo", free_memory(200)), says=("200 MB",)
    ),
    "full tmp": Fault(
        "disk-full", nearly_full_tmp, says=("/tmp has little room", "24 MB free on /tmp", "du -xh")
    ),
    "no inodes in tmp": Fault(
        "disk-full",
        lambda host: host.do("mount -o remount,nr_inodes=40 /tmp"),
        says=("no more files can be created in /tmp", "inodes free on /tmp", "du -x --inodes"),
    ),
    "no inodes in shm": Fault(
        "shm-full",
        lambda host: host.do("mount -o remount,nr_inodes=40 /dev/shm"),
        says=("no more files can be created in /dev/shm",),
    ),
    "small home": Fault(
        "disk-full",
        lambda host: host.do("mount -t tmpfs -o size=600m home /root"),
        "warn",
        ("/root",),
        also=("version-drift",),  # an interpreter below the home is hidden
    ),
    "tmp read-only": Fault(
        "tmp-not-writable", lambda host: host.do("mount -o remount,ro /tmp"), says=("/tmp cannot be written",)
    ),
    "tmp without programs": Fault(
        "tmp-noexec",
        lambda host: host.do("mount -o remount,noexec /tmp"),
        "warn",
        ("nothing that is compiled in /tmp may be run", "findmnt -T /tmp"),
    ),
    "tmp of root only": Fault(
        "tmp-not-writable",
        lambda host: host.do("chmod 755 /tmp"),
        says=("/tmp cannot be written to", "findmnt -T /tmp"),
        user="trainee",
    ),
    "no home": Fault(
        "tmp-not-writable",
        lambda host: host.do("rmdir /home/trainee"),
        "warn",
        ("/home/trainee cannot be written to", "does not exist"),
        user="trainee",
    ),
}


@pytest.mark.parametrize("names", batches(FAULTS))
def test_found(names: list[str], examine: Examiner) -> None:
    prove_each({name: FAULTS[name] for name in names}, examine)


@pytest.mark.parametrize("name", ["Docker's shm", "full shm"])
def test_found_by_an_ordinary_user_while_hosts_connect(name: str, examine: Examiner) -> None:
    fault = FAULTS[name]
    prove(Fault(fault.check, fault.inject, says=fault.says, args=(), user="trainee"), name, examine)


def test_expectations_replace_the_usual_limits(lab: Lab, examine: Examiner) -> None:
    lab["node2"].shm("64m")
    nearly_full_tmp(lab["node2"])
    args = ("--expect", "shm_mb=32", "--expect", "disk_free_mb=20", "--expect", "disk_fail_mb=10")
    assert_healthy(examine(*ALONE, *args))
