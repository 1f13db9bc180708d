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


def nearly_full_tmp(host: Host) -> None:
    host.resize("/tmp", "64m")
    host.fill("/tmp/core.4711", "40m")


FAULTS = Fault.table(__file__, "FAULTS", no_shm, stale_segments, nearly_full_tmp)


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
