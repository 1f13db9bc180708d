"""What every rank is given: the login is judged as the launch is, which overrides it."""

import pytest

from doctor.job.wishes import JobWishes
from doctor.model import Backend, Finding, SourcedValue
from tests.support.cases import cases
from tests.support.recordings import heard, recording, report

NAMES = ["a", "b"]


def found(
    login: dict[str, str],
    launch: dict[str, str] | None = None,
    backend: str = "hccl",
    addresses: str = "",
    port: int | None = None,
) -> list[Finding]:
    master = SourcedValue(port, "test") if port else None
    wishes = JobWishes(backend=SourcedValue(Backend(backend), "test"), env=launch or {}, master_port=master)
    told = {"environment": "".join(f"{name}={value}\n" for name, value in login.items())}
    told |= {"addresses": addresses} if addresses else {}
    answers = {name: heard(n, NAMES, **told) for n, name in enumerate(NAMES, 1)}
    made = report(recording(NAMES, heard=answers, wishes=wishes))
    return [each for each in made.findings if each.check in ("env-invalid", "launch-values")]


@cases
def test_a_value_that_the_library_does_not_take(name: str, value: str, backend: str, expected: str) -> None:
    """On all hosts alike, so that no host differs from the others."""
    for login, launch in (({name: value}, {}), ({}, {name: value})):
        told = found(login, launch, backend)
        assert [each.status.value for each in told] == ([expected] if expected else [])
        for each in told:
            who = "env-invalid" if login else "launch-values"
            assert (each.check, each.hosts, each.subject, each.actual) == (who, (), name, f"{name}={value}")


@cases
def test_the_port_of_the_master_is_none_of_hccls_own(
    port: int, base: dict[str, str], backend: str, says: str
) -> None:
    told = found({}, base, backend, port=port)
    assert [each.actual for each in told] == ([says] if says else [])
    assert all((each.check, each.subject) == ("launch-values", f"port {port}") for each in told)


def test_the_launch_overrides_the_login() -> None:
    wrong, right = {"HCCL_IF_BASE_PORT": "80"}, {"HCCL_IF_BASE_PORT": "50000"}
    assert found(wrong, right) == []
    (told,) = found(right, wrong)
    assert told.check == "launch-values"
    (told,) = found(wrong)
    assert told.remedy
    assert "grep -rsn HCCL_IF_BASE_PORT /etc/environment" in told.remedy.commands[0]


@pytest.mark.parametrize(
    ("login", "launch", "says"),
    [
        ({"HCCL_WHITELIST_DISABLE": "0"}, {}, "which is not set"),
        ({}, {"HCCL_WHITELIST_DISABLE": "0"}, "which is not set"),
        ({"HCCL_WHITELIST_DISABLE": "0"}, {"HCCL_WHITELIST_DISABLE": "1"}, ""),
        ({"HCCL_WHITELIST_DISABLE": "0"}, {"HCCL_WHITELIST_FILE": "/etc/list.json"}, ""),
        ({"HCCL_WHITELIST_FILE": "/etc/list.json"}, {"HCCL_WHITELIST_DISABLE": "0"}, ""),
    ],
)
def test_a_list_that_hccl_is_to_read_and_nobody_names(
    login: dict[str, str], launch: dict[str, str], says: str
) -> None:
    told = found(login, launch)
    assert [each.hosts for each in told] == [()] * bool(says)
    assert all(says in each.summary and each.status.value == "fail" for each in told)
    assert found(login, launch, "gloo") == []


@cases
def test_a_family_that_no_interface_has(
    family: str, interface: str, addresses: str, hccl: str, nccl: str
) -> None:
    for backend, expected in (("hccl", hccl), ("nccl", nccl), ("gloo", "")):
        library = "NCCL" if backend == "nccl" else "HCCL"
        login = {f"{library}_SOCKET_FAMILY": family}
        login |= {f"{library}_SOCKET_IFNAME": interface} if interface else {}
        told = found(login, backend=backend, addresses=addresses)
        assert [each.status.value for each in told] == ([expected] if expected else [])


@pytest.mark.parametrize(
    ("name", "more", "backend", "expected"),
    [
        ("NCCL_GRAPH_FILE", {}, "nccl", "fail"),
        ("NCCL_GRAPH_FILE", {}, "gloo", ""),
        ("NCCL_TOPO_FILE", {}, "nccl", "warn"),
        ("NCCL_NET_PLUGIN", {}, "nccl", "warn"),
        ("NCCL_NET_PLUGIN", {}, "gloo", ""),
        ("HCCL_WHITELIST_FILE", {}, "hccl", ""),
        ("RANK_TABLE_FILE", {}, "hccl", "fail"),
        ("RANK_TABLE_FILE", {}, "nccl", ""),
        ("HCCL_WHITELIST_FILE", {"HCCL_WHITELIST_DISABLE": "0"}, "hccl", "fail"),
    ],
)
def test_a_file_that_the_login_names(name: str, more: dict[str, str], backend: str, expected: str) -> None:
    login = {f"absent {name} /etc/x.xml\n{name}": "/etc/x.xml", **more}
    told = [(each.status.value, each.hosts, each.actual) for each in found(login, backend=backend)]
    assert told == ([(expected, (), f"{name}=/etc/x.xml")] if expected else [])
    assert found(login, {name: "/etc/y.xml"}, backend) == [], "the launch overrides it"


def test_an_address_that_is_named_needs_no_family() -> None:
    assert found({"HCCL_SOCKET_FAMILY": "AF_INET6", "HCCL_IF_IP": "10.0.0.1"}) == []


def test_a_network_that_another_variable_takes_away() -> None:
    off = {"NCCL_NET": "IB", "NCCL_IB_DISABLE": "1"}
    for login, launch in ((off, {}), ({}, off)):
        assert [(each.subject, each.hosts) for each in found(login, launch, "nccl")] == [("NCCL_NET", ())]
    for sound in ({**off, "NCCL_NET": "Socket"}, {**off, "NCCL_IB_DISABLE": "0"}):
        assert found({}, sound, "nccl") == []
    assert found({}, off, "gloo") == []
