"""The folders that a job needs, each fault alone on one host; memory stands in for a server."""

from dataclasses import replace

import pytest

from tests.lab import Lab
from tests.support.batches import batches, prove_each
from tests.support.faults import ALONE, Examiner, Fault, assert_healthy, assert_only

NEEDS = (*ALONE, "--needs", "/data", "--needs", "/ckpt:rw:16M")
FAULTS = {name: replace(fault, args=NEEDS) for name, fault in Fault.table(__file__, "FAULTS").items()}


def mounted(lab: Lab) -> None:
    for host in lab:
        for folder in ("/data", "/ckpt"):
            host.do(f"rm -rf {folder}; mkdir {folder}; mount -t tmpfs -o size=64m srv:{folder} {folder}")
        host.do("touch /data/a '/data/b c'")


@pytest.fixture
def bench(examine: Examiner) -> Examiner:
    made = replace(examine, prepare=mounted)
    made.heal()
    return made


@pytest.mark.parametrize("names", batches(FAULTS))
def test_found(names: list[str], bench: Examiner) -> None:
    prove_each({name: FAULTS[name] for name in names}, bench)


def test_folders_that_only_look_different(bench: Examiner) -> None:
    """One server under two names, a whole copy, and a folder of each host's own to write to."""
    assert_healthy(bench(*NEEDS))
    copy = "mkdir /copy; cp -r /data/. /copy; umount /data; rmdir /data; mv /copy /data"
    bench.lab["node2"].do(copy)
    other = "mount -t tmpfs 10.0.0.9:/data /data; touch /data/a '/data/b c'"
    bench.lab["node3"].do(f"umount /data; {other}")
    for host in bench.lab:
        host.do(f"umount /ckpt; touch /ckpt/{host.name}")
    assert_healthy(bench(*NEEDS))


def test_one_is_read_slowly(bench: Examiner) -> None:
    """Emulated: on one host, dd is late."""
    needs = (*ALONE, "--needs", "/data:3MB/s")
    for host in bench.lab:
        host.do("mkdir -p /data/shards/1; truncate -s 66M /data/shards/1/a; mount -o remount,size=200m /data")
    assert_healthy(bench(*needs))
    bench.lab["node2"].program(
        "dd", "#!/bin/sh\nsleep 1; echo '4194304 bytes (4.2 MB, 4.0 MiB) copied, 3.0001 s, 1.4 MB/s' >&2"
    )
    (found,) = assert_only(bench(*needs), "folder-slow", ["node2"])
    assert (found["expected"], found["actual"]) == ("3 MB/s", "1.4 MB/s")


def test_what_is_not_a_need_ends_with_2(lab: Lab) -> None:
    for wrong in ("data", "/data/../x", "/d*", "/data:5", "/data:rw:many", "/data:5MB/h", ""):
        done = lab.doctor("check", "node1", "--needs", wrong)
        assert done.returncode == 2, done.stdout + done.stderr
        assert "--needs" in done.stderr
