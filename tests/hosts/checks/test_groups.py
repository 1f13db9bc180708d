"""Real control groups that hold the login of a host: what they leave to the ranks."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.lab import Host, Lab
from tests.support.cases import from_cases
from tests.support.faults import ALONE, Examiner, assert_healthy, assert_only

CGROUPS = Path("/sys/fs/cgroup")
EIGHT = (*ALONE, "--backend", "gloo", "--ranks-per-host", "8", "--expect", "shm_mb=1")
pytestmark = pytest.mark.skipif(not (CGROUPS / "pids/pids.max").parent.is_dir(), reason="needs cgroup v1")


@contextmanager
def held(host: Host, controller: str, **limits: str) -> Iterator[str]:
    """The host's sshd in two groups, of which the outer one has the limits."""
    outer = f"{CGROUPS}/{controller}/cluster-doctor-lab-{os.getpid()}-{host.name}.slice"
    files = "".join(f"echo {value} >{outer}/{file.replace('__', '.')}; " for file, value in limits.items())
    host.do(f"mkdir -p {outer}/login; {files}cat /run/sshd.pid >{outer}/login/cgroup.procs")
    try:
        yield f"/{Path(outer).name}"
    finally:
        host.do(f"cat /run/sshd.pid >{CGROUPS}/{controller}/cgroup.procs")
        host.do(
            f"sleep 1; cat {outer}/login/cgroup.procs | xargs -r kill; sleep 0.5; rmdir {outer}/login {outer}"
        )


LIMITS = from_cases(__file__, "LIMITS", dict[str, tuple[str, dict[str, str], str, str]])


@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_of_an_outer_group_is_found(name: str, lab: Lab, examine: Examiner) -> None:
    controller, limits, status, says = LIMITS[name]
    with held(lab["node2"], controller, **limits) as path:
        outcome = examine(*EIGHT)
        (found,) = assert_only(outcome, "group-limited", ["node2"], status)
        assert path in found["actual"]
        assert re.search(says, " ".join(outcome.text.split()))
    assert_healthy(examine(*EIGHT))


def test_generous_limits_are_sound(lab: Lab, examine: Examiner) -> None:
    with (
        held(lab["node1"], "pids", pids__max="4000"),
        held(lab["node2"], "memory", memory__limit_in_bytes="18G"),
        held(lab["node3"], "cpu", cpu__cfs_quota_us="800000"),
    ):
        assert_healthy(examine(*EIGHT))
