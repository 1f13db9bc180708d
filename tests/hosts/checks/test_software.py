"""Versions, environments, the kernel log and processes, each fault alone on one host."""

import shlex
import sys

import pytest

from tests.lab import Host, Lab
from tests.support.batches import batches, prove_each
from tests.support.cases import from_cases
from tests.support.faults import (
    ALONE,
    Examiner,
    Fault,
    assert_healthy,
    assert_only,
    victim,
    words,
)
from tests.support.packages import PACKAGES, package
from tests.support.paths import ROOT

ASCEND = "/usr/local/Ascend"
DRIVER = "Version=24.1.0\ncompatible_version_fw=[7.0.0,7.5.9]\n"
SAMPLES = ROOT / "tests" / "samples" / "dmesg"
PLAIN = ("--python", "python3")
"""The person who runs the tests may have an environment with torch, which the lab's hosts then have too."""
NO_AGE = (*ALONE, "--expect", "leftover_minutes=0")


def other_torch(host: Host) -> None:
    package("torch", "2.1.0", host)
    package("torch_npu", "2.0.1", host)


def renumber(host: Host) -> None:
    host.do("sed -i s/^trainee:x:4001:/trainee:x:4007:/ /etc/passwd; chown -R 4007 /home/trainee")


def old_firmware(host: Host) -> None:
    host.write(f"{ASCEND}/driver/version.info", DRIVER)
    host.write(f"{ASCEND}/firmware/version.info", "Version=6.4.12.1.241\n")


FAULTS = Fault.table(__file__, "FAULTS", renumber, other_torch, old_firmware)


@pytest.mark.parametrize("names", batches(FAULTS))
def test_found(names: list[str], examine: Examiner) -> None:
    prove_each({name: FAULTS[name] for name in names}, examine)


def test_a_tie_between_two_halves_is_undecided(lab: Lab, examine: Examiner) -> None:
    for name in ("node2", "node4"):
        lab[name].write("/etc/os-release", 'PRETTY_NAME="openEuler 22.03 LTS"\n')
    (found,) = assert_only(examine(*ALONE), "version-drift", lab.names, "warn")
    assert "no majority" in found["summary"]
    assert found["confidence"] == "suspect"


def test_variables_that_belong_to_a_host_may_differ(lab: Lab, examine: Examiner) -> None:
    lab["node2"].sshd(SetEnv="HCCL_IF_IP=198.18.0.12 ASCEND_RT_VISIBLE_DEVICES=0,1")
    assert_healthy(examine(*ALONE))


@pytest.mark.parametrize(("expected", "version"), [("any", None), ("2.1", "2.10.0")])
def test_torch_is_missing(expected: str, version: str | None, lab: Lab, examine: Examiner) -> None:
    host = victim(lab, "any", f"torch {expected}")
    for other in lab:
        if other is not host:
            package("torch", "2.1.2", other)
        elif version:
            package("torch", version, other)
    outcome = examine(*ALONE, *PLAIN, "--expect", f"torch={expected}")
    (found,) = assert_only(outcome, "torch-missing", [host.name], also=("version-drift",))
    assert f"the job's interpreter has {f'torch {version}' if version else 'no torch'}" in found["summary"]
    assert found["subject"].startswith("/usr/bin/python3")


def test_torch_is_compiled_for_another_python(lab: Lab, examine: Examiner) -> None:
    """As on a PYTHONPATH with the packages of another environment; it cannot be imported."""
    for host in lab:
        package("torch", "2.1.2", host)
    for name in ("__init__.py", "_C.cpython-38-x86_64-linux-gnu.so"):
        lab["node3"].write(f"{PACKAGES}/torch/{name}", "")
    outcome = examine(*ALONE, *PLAIN, "--expect", "torch=any")
    (found,) = assert_only(outcome, "torch-missing", ["node3"])
    assert "has torch 2.1.2 for another Python" in words(found)
    assert "_C.cpython-38" in words(found)
    lab["node3"].do(f"mv {PACKAGES}/torch/_C.cpython-38-x86_64-linux-gnu.so {PACKAGES}/torch/_C.abi3.so")
    assert_healthy(examine(*ALONE, *PLAIN, "--expect", "torch=any"))


def test_any_version_of_torch_passes_without_an_expectation(lab: Lab, examine: Examiner) -> None:
    for host in lab:
        package("torch", "2.1.2", host)
    assert_healthy(examine(*ALONE))


def test_an_interpreter_that_lacks_its_library_is_not_absent(lab: Lab, examine: Examiner) -> None:
    """The loader ends it with 127, as a shell does if there is no such program."""
    lost = "error while loading shared libraries: libpython3.11.so.1.0: cannot open shared object file"
    for host in lab:
        sound = 'exec /usr/bin/python3 "$@"'
        broken = f'echo "python3: {lost}" >&2; exit 127'
        host.write("/opt/env/bin/python3", f"#!/bin/sh\n{broken if host.name == 'node2' else sound}\n")
        host.do("chmod 755 /opt/env/bin/python3")
    outcome = examine(*ALONE, "--python", "/opt/env/bin/python3")
    unread = [each for each in outcome.report["findings"] if lost in each["summary"]]
    assert unread
    assert all(each["hosts"] == ["node2"] and each["status"] == "unknown" for each in unread)
    assert not outcome.trouble
    assert "not installed there" not in outcome.text


LOGS = from_cases(__file__, "LOGS", dict[str, set[str]])


def test_kernel_log(lab: Lab, examine: Examiner) -> None:
    """Another message on each host."""
    texts = {host: (SAMPLES / f"{sample}.txt").read_text() for host, sample in zip(lab, LOGS, strict=True)}
    for host, text in texts.items():
        host.kernel_log(text)
    found = assert_only(examine(*ALONE), "kernel-log", lab.names, "warn")
    for (host, text), expected in zip(texts.items(), LOGS.values(), strict=True):
        mine = [each for each in found if each["hosts"] == [host.name]]
        assert {each["summary"].removeprefix("kernel log: ") for each in mine} == expected
        assert all(evidence["text"] in text for each in mine for evidence in each["evidence"])
    assert all(len(each["hosts"]) == 1 for each in found)


XID = "[{:>12.6f}] NVRM: Xid (PCI:0000:05:00): {}, pid=1896, name=python, Ch 00000008\n"
DAY = 24 * 3600


def test_kernel_log_is_read_for_a_day_and_for_faults_of_the_host(lab: Lab, examine: Examiner) -> None:
    lab["node2"].shadow("/proc/uptime", f"{2 * DAY}.00 9.00\n")
    lab["node2"].kernel_log(XID.format(DAY - 60, 79) + XID.format(2 * DAY - 60, 31) + XID.format(9, 74))
    assert_healthy(examine(*ALONE))


def test_kernel_log_evidence_has_its_age(lab: Lab, examine: Examiner) -> None:
    lab["node4"].shadow("/proc/uptime", f"{2 * DAY}.00 9.00\n")
    lab["node4"].kernel_log(XID.format(9, 79) + XID.format(2 * DAY - 7200, 79))
    (found,) = assert_only(examine(*ALONE), "kernel-log", ["node4"], "warn")
    assert found["actual"] == "once"
    assert [each["text"][:10] for each in found["evidence"]] == ["2.0 h ago:"]


def test_what_the_kernel_logged_is_verified_by_what_it_logs_from_then_on(lab: Lab, examine: Examiner) -> None:
    """The printed command passes after the repair, and fails if the fault comes again."""

    def killed(seconds: float) -> str:
        return f"[{2 * DAY - seconds:.6f}] Out of memory: Killed process 7 (python3) total-vm:1kB\n"

    host = lab["node2"]
    host.shadow("/proc/uptime", f"{2 * DAY}.00 9.00\n")
    host.kernel_log(killed(3600))
    outcome = examine(*ALONE)
    (found,) = assert_only(outcome, "kernel-log", ["node2"], "warn")
    assert found["actual"] == "1 kill"
    line = found["verify"]
    assert "kernel_log_since=20" in line
    assert lab.doctor(*shlex.split(line)[1:]).returncode == 0
    host.kernel_log(killed(3600) + killed(0))
    assert lab.doctor(*shlex.split(line)[1:]).returncode == 1


# Between vfork and exec the parent cannot be interrupted; the child waits for a writer that never comes.
HANGS = from_cases(__file__, "HANGS", str)


STUCK = from_cases(__file__, "STUCK", dict[str, tuple[str, ...]])


def stick(name: str, host: Host) -> None:
    """Start the program and wait until it is stuck."""
    program, seen, _ = STUCK[name]
    host.spawn([sys.executable, "-ISc", program])
    host.await_that(lambda: host.ask(seen).returncode == 0, name)


def stuck(name: str) -> Fault:
    return Fault("stuck-process", lambda host: stick(name, host), "warn", (STUCK[name][2],), NO_AGE)


LEFT = {name: stuck(name) for name in STUCK}


@pytest.mark.parametrize("names", batches(LEFT, *LEFT, alike=True))
def test_stuck_process(names: list[str], examine: Examiner) -> None:
    prove_each({name: LEFT[name] for name in names}, examine)


def test_a_young_process_is_not_stuck(lab: Lab, examine: Examiner) -> None:
    stick("a worker without its launcher", lab["node2"])
    assert_healthy(examine(*ALONE))


LIBRARY = "/opt/nccl/libnccl.so.2"


def nccl(host: Host, words: str) -> None:
    """Where a login finds it before all others; torch is built for CUDA."""
    package("torch", "2.5.1", host)
    host.write(f"{PACKAGES}/torch/version.py", "cuda = '12.4'\n")
    host.write(LIBRARY, words)
    host.sshd(SetEnv="LD_LIBRARY_PATH=/opt/nccl")


def test_a_library_of_ranks_that_is_empty_on_one_host(lab: Lab, examine: Examiner) -> None:
    """A job over gloo does not load it."""
    for host in lab:
        nccl(host, "\x7fELF\x02")
    options = (*ALONE, *PLAIN)
    by_nccl = (*options, "--backend", "nccl", "--skip", "gpu-missing")
    assert_healthy(examine(*by_nccl))
    host = victim(lab, "any", "empty library")
    host.write(LIBRARY, "")
    (found,) = assert_only(examine(*by_nccl), "library-unusable", [host.name])
    assert found["summary"] == "libnccl.so.2 is an empty file"
    assert "ls -lL /opt/nccl/libnccl.so.2" in found["remedy"]["commands"]
    assert_healthy(examine(*options))
    host.write(LIBRARY, "\x7fELF\x02 of another build")
    (found,) = assert_only(examine(*options), "version-drift", [host.name], "warn")
    assert found["subject"] == "libnccl.so.2"
