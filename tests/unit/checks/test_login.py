"""What a login passes on to ranks: how grave each limit is, and what is sound."""

from typing import Any

from doctor.job.wishes import JobWishes
from doctor.model import Backend, Finding, MissingFact, SourcedValue
from tests.support.cases import cases
from tests.support.recordings import FILES, heard, recording, report

NAMES = ["a", "b"]
PYTHON = "python 3.11.2 /opt/train/bin/python\n"


def found(check: str, ranks: int = 8, backend: Backend = Backend.GLOO, **changed: Any) -> list[Finding]:
    wishes = JobWishes(
        backend=SourcedValue(backend, "test"), ranks_per_host=SourcedValue(ranks, "--ranks-per-host")
    )
    answers = {name: heard(n, NAMES, **changed) for n, name in enumerate(NAMES, 1)}
    return [
        each
        for each in report(recording(NAMES, heard=answers, wishes=wishes)).findings
        if each.check == check
    ]


def status(check: str, **more: Any) -> str:
    return "".join(each.status.value for each in found(check, **more))


def limits(name: str, value: int | str) -> dict[str, str]:
    (path,) = FILES["limits"]
    return {path: f"{name} {value} {value} bytes\n{FILES['limits'][path]}"}


@cases
def test_address_space(limit: int | str, gloo: str, hccl: str) -> None:
    told = limits("Max address space", limit)
    assert status("address-space-limited", limits=told) == gloo
    assert status("address-space-limited", limits=limits("Max data size", limit)) == gloo
    assert status("address-space-limited", limits=told, backend=Backend.HCCL) == hccl


@cases
def test_file_size(limit: int | str, expected: str) -> None:
    assert status("file-size-limited", limits=limits("Max file size", limit)) == expected


@cases
def test_cpu_time(limit: int | str, expected: str) -> None:
    assert status("cpu-time-limited", limits=limits("Max cpu time", limit)) == expected


@cases
def test_cpus(allowed: str, online: str, ranks: int, env: str, expected: str) -> None:
    files = {
        "/proc/self/status": f"Cpus_allowed:\tff\nCpus_allowed_list:\t{allowed}\nMems_allowed_list:\t0",
        "/sys/devices/system/cpu/online": online.partition(" isolated ")[0],
        "/sys/devices/system/cpu/isolated": online.partition(" isolated ")[2],
    }
    assert status("cpu-affinity-narrow", cpus=files, ranks=ranks, environment=env) == expected


@cases
def test_python_home(home: str, expected: str) -> None:
    env = f"PYTHONHOME={home}\n"
    assert status("python-home-wrong", environment=env, python=PYTHON) == expected


def test_a_python_home_that_is_not_there() -> None:
    env = "absent PYTHONHOME /opt/train\nPYTHONHOME=/opt/train\n"
    assert status("python-home-wrong", environment=env, python=PYTHON) == "fail"


def test_an_interpreter_that_did_not_answer_accuses_no_python_home() -> None:
    late = MissingFact("python", "it did not answer within 10 s")
    assert status("python-home-wrong", environment="PYTHONHOME=/opt/train\n", python=late) == "unknown"


def test_zones_and_libraries_that_are_not_there() -> None:
    absent = "absent LD_PRELOAD /a.so\nabsent LD_PRELOAD /b.so\nabsent TZ Asia/Shangai\n"
    assert [each.actual for each in found("preload-missing", environment=absent)] == ["/a.so", "/b.so"]
    assert [each.actual for each in found("time-zone-unknown", environment=absent)] == ["Asia/Shangai"]
    assert found("preload-missing", environment="") == found("time-zone-unknown", environment="") == []


@cases
def test_one_user_has_one_number(a: str, b: str, expected: str) -> None:
    """Of two users, of hosts that do not tell, and of two that agree nothing is said."""
    answers = {name: heard(n, NAMES, environment=said) for n, name, said in ((1, "a", a), (2, "b", b))}
    told = report(recording(NAMES, heard=answers)).findings
    assert "".join(each.actual for each in told if each.check == "env-drift") == expected


def test_one_zone_of_two_differs() -> None:
    wishes = JobWishes()
    answers = {
        "a": heard(1, NAMES, environment="TZ=UTC\n"),
        "b": heard(2, NAMES, environment="TZ=Asia/Tokyo\n"),
    }
    told = [each.subject for each in report(recording(NAMES, heard=answers, wishes=wishes)).findings]
    assert told == ["TZ"]
