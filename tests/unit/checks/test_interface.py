"""interface-wrong: silent if others reach the addresses that ranks would offer, or if another check reports
the fault.
"""

from typing import Any

import pytest

from doctor.job.launch.process_env import Launch, ProcessEnv
from doctor.job.wishes import JobWishes
from doctor.mesh import Link, MeshResult
from doctor.mesh.result import OmittedHost
from doctor.model import Backend, Finding, Host, SourcedValue
from tests.support.cases import cases
from tests.support.recordings import heard, mesh, recording, report

NAMES = ["a", "b", "c"]
INTERFACES = "1: lo inet 127.0.0.1/8\n2: eth0 inet 10.0.0.{n}/24\n3: {more}"
DOCKER = "docker0 inet 172.17.0.1/16"


def answer(number: int, own: str = "", more: str = DOCKER, **changed: Any) -> Any:
    """The answer of a host whose own name resolves to `own`, if that is not its usual address."""
    names = "\n".join(
        f"? {peer}\n{own if own and peer == NAMES[number - 1] else f'10.0.0.{n}'} STREAM {peer}"
        for n, peer in sorted(enumerate(NAMES, 1), key=lambda each: each[0] != number)
    )
    addresses = INTERFACES.format(n=number, more=more.format(n=number))
    return heard(number, NAMES, names=names, addresses=addresses, **changed)


def offered(address: str, **outcomes: str) -> MeshResult:
    """The results of connecting to `address`, by source; the target is the host that is not a source."""
    (target,) = set(NAMES) - outcomes.keys()
    links = tuple(Link(s, target, address, 40001, "ephemeral", o) for s, o in outcomes.items())  # type: ignore[arg-type]
    return MeshResult("full", None, (), links, (), (), 0.5)


def found(
    answers: dict[str, Any], tried: MeshResult | None = None, backend: Backend | None = None, **more: Any
) -> list[Finding]:
    wishes = JobWishes(backend=SourcedValue(backend, "test") if backend else None, **more)
    of = recording(NAMES, heard=answers, offered=tried, wishes=wishes)
    return [each for each in report(of).findings if each.check in ("interface-wrong", "hostname-loopback")]


def test_a_bridge_that_every_host_has_is_silent_as_long_as_the_names_are_right() -> None:
    assert found({name: answer(n) for n, name in enumerate(NAMES, 1)}) == []


def test_every_own_name_is_the_bridge() -> None:
    (one,) = found({name: answer(n, "172.17.0.1") for n, name in enumerate(NAMES, 1)})
    assert (one.check, one.status.value, one.hosts) == ("interface-wrong", "fail", ("a", "b", "c"))
    assert one.actual == "172.17.0.1 on docker0 (its own name resolves to it)"
    assert one.remedy
    assert one.remedy.commands[0].startswith("export GLOO_SOCKET_IFNAME=eth0 ")


def test_ranks_of_mindspore_on_cpus_do_not_choose_by_the_own_name() -> None:
    answers = {name: answer(n, "172.17.0.1") for n, name in enumerate(NAMES, 1)}
    assert found(answers, framework=SourcedValue("mindspore", "test")) == []


@pytest.mark.parametrize(("address", "status"), [("9.0.0.1", "fail"), ("172.17.0.1", "warn")])
def test_gloo_connects_from_the_higher_address_to_the_lower(address: str, status: str) -> None:
    """The host with the highest address waits for nobody, so it works by luck."""
    answers = {"b": answer(2, address, f"br0 inet {address}/16")}
    (one,) = found(answers, offered(address, a="refused", c="dropped"))
    assert (one.status.value, one.hosts) == (status, ("b",))


def test_a_second_network_that_the_others_reach_is_silent() -> None:
    answers = {"b": answer(2, "9.0.0.2", "eth1 inet 9.0.0.{n}/24")}
    assert found(answers, offered("9.0.0.2", a="ok", c="ok")) == []


def test_gloo_connects_no_two_versions_of_ip() -> None:
    """Each host reaches the address of the other; torch reports "address family mismatch" all the same."""
    answers = {"b": answer(2, "fd00::2", "eth0 inet6 fd00::2/64")}
    (one,) = found(answers, offered("fd00::2", a="ok", c="ok"))
    assert (one.status.value, one.hosts) == ("fail", ("b",))
    assert one.evidence[0].text.startswith("10.0.0.1: gloo does not connect IPv4 addresses")
    assert found(answers, offered("fd00::2", a="ok", c="ok"), Backend.NCCL) == []


def test_an_interface_without_an_address_that_a_router_knows() -> None:
    named = {"GLOO_SOCKET_IFNAME": "eth1"}
    answers = {name: answer(n, more=f"eth1 inet 9.0.0.{n}/24") for n, name in enumerate(NAMES, 1)}
    answers["b"] = answer(2, more="eth1 inet6 fe80::2/64")
    (one,) = found(answers, env=named)
    assert (one.status.value, one.hosts, one.subject) == ("fail", ("b",), "interface eth1")
    assert one.remedy
    assert "=INTERFACE " in one.remedy.commands[0], "its own name would not help"
    of_link = {name: answer(n, more=f"eth1 inet 169.254.0.{n}/16") for n, name in enumerate(NAMES, 1)}
    assert found(of_link, env=named) == []


def test_what_was_not_tried_is_undecided() -> None:
    answers = {"b": answer(2, "9.0.0.2", "eth1 inet 9.0.0.{n}/24")}
    (one,) = found(answers, offered("9.0.0.2", a="untested", c="untested"))
    assert (one.status.value, one.hosts) == ("unknown", ("b",))
    assert "9.0.0.2 on eth1" in one.summary


def test_a_host_that_is_cut_off_anyway_is_not_told_twice() -> None:
    answers = {"b": answer(2, "9.0.0.2", "eth1 inet 9.0.0.{n}/24")}
    tried = offered("9.0.0.2", a="dropped", c="dropped")
    of = recording(NAMES, heard=answers, offered=tried, mesh=mesh(NAMES, ("a", "b"), ("c", "b")))
    assert [each.check for each in report(of).findings if each.status.value == "fail"] == ["port-unreachable"]


@pytest.mark.parametrize("own", ["127.0.1.1", "192.0.2.9"])
def test_a_loopback_name_is_one_fault_only(own: str) -> None:
    assert [each.check for each in found({"b": answer(2, own)})] == ["hostname-loopback"]


def test_the_login_or_the_launch_names_the_interface() -> None:
    good = {
        n: answer(i, "172.17.0.1", environment="GLOO_SOCKET_IFNAME=eth0\n") for i, n in enumerate(NAMES, 1)
    }
    assert found(good) == []
    named = {name: answer(n, "172.17.0.1") for n, name in enumerate(NAMES, 1)}
    assert found(named, env={"GLOO_SOCKET_IFNAME": "eth0"}) == []
    (one,) = found(named, env={"NCCL_SOCKET_IFNAME": "eth0"})
    assert one.hosts == ("a", "b", "c"), "gloo does not read the variable of NCCL"
    (one,) = found({"b": answer(2, "127.0.1.1")}, env={"NCCL_SOCKET_IFNAME": "eth0"})
    assert one.check == "hostname-loopback"


def test_a_launch_that_names_it_by_what_only_the_hosts_know_is_undecided() -> None:
    (one,) = found({"b": answer(2, "172.17.0.1")}, env={"GLOO_SOCKET_IFNAME": "$GLOO_SOCKET_IFNAME"})
    assert (one.check, one.status.value) == ("interface-wrong", "unknown")


def test_an_address_of_the_inventory_is_believed_unless_a_launch_is_known() -> None:
    answers = {"b": answer(2, "172.17.0.1")}
    hosts = tuple(Host(name, f"10.0.0.{n}", data=f"10.0.0.{n}") for n, name in enumerate(NAMES, 1))
    tried = offered("172.17.0.1", a="refused", c="refused")

    def checks(launch: Launch | None) -> list[str]:
        wishes = JobWishes(launch=launch)
        of = report(recording(NAMES, heard=answers, offered=tried, hosts=hosts, wishes=wishes))
        return [each.check for each in of.findings if each.check.startswith("interface")]

    assert checks(None) == []
    assert checks(Launch("train.sh", (ProcessEnv("train.sh:1", None, {"OMP_NUM_THREADS": "1"}),), False))


def test_an_interface_that_the_login_names_and_others_do_not_reach() -> None:
    answers = {name: answer(n, environment="GLOO_SOCKET_IFNAME=docker0\n") for n, name in enumerate(NAMES, 1)}
    (one,) = found(answers)
    assert one.actual == "172.17.0.1 on docker0 (GLOO_SOCKET_IFNAME=docker0)"


@pytest.mark.parametrize("backend", [Backend.NCCL, Backend.HCCL])
def test_the_choice_of_nccl_and_hccl_is_emulated_and_says_so(backend: Backend) -> None:
    """A bridge that comes before the network card by name and by the time of its creation."""
    first = "1: lo inet 127.0.0.1/8\n2: br-1 inet 172.18.0.1/16\n3: eth0 inet 10.0.0.{n}/24"
    answers = {n: heard(i, NAMES, addresses=first.format(n=i)) for i, n in enumerate(NAMES, 1)}
    (one,) = found(answers, backend=backend)
    name = backend.value.upper()
    assert one.summary == f"{name} would offer an address that the other hosts do not reach"
    assert one.actual == f"172.18.0.1 on br-1 ({name}'s own order; emulated, {name} was not asked)"
    assert one.confidence.value == "strong"
    assert found(answers, backend=backend, env={f"{name}_SOCKET_IFNAME": "eth"}) == []


@cases
def test_a_name_that_no_interface_has_is_a_fault_if_the_job_may_read_it(
    variable: str, job: Backend | None, status: str
) -> None:
    login = f"{variable}_SOCKET_IFNAME=nosuch0\n"
    answers = {name: answer(n, environment=login) for n, name in enumerate(NAMES, 1)}
    wishes = JobWishes(backend=SourcedValue(job, "--backend") if job else None)
    of = report(recording(NAMES, heard=answers, wishes=wishes))
    (one,) = [each for each in of.findings if each.check == "interface-missing"]
    assert (one.status.value, one.hosts) == (status, ()), "a fault of what all were given"
    answers["b"] = answer(2, environment="GLOO_SOCKET_IFNAME=eth0\n")
    of = report(recording(NAMES, heard=answers, wishes=wishes))
    (one,) = [each for each in of.findings if each.check == "interface-missing"]
    assert (one.status.value, one.hosts) == (status, ("a", "c"))


def test_an_alias_is_an_interface() -> None:
    more = "eth0 inet 10.0.9.{n}/24 scope global secondary eth0:1\\ valid_lft forever"
    answers = {
        name: answer(n, more=more, environment="GLOO_SOCKET_IFNAME=eth0:1\n")
        for n, name in enumerate(NAMES, 1)
    }
    of = report(recording(NAMES, heard=answers))
    assert not [each.check for each in of.findings if each.check == "interface-missing"]


def test_nccl_takes_no_interface_without_a_link() -> None:
    first = "1: lo inet 127.0.0.1/8\n2: eno1 inet 192.168.0.1/16\n3: eth0 inet 10.0.0.{n}/24"
    down = {"/sys/class/net/eno1/mtu": "1500", "/sys/class/net/eno1/operstate": "down"}
    answers = {n: heard(i, NAMES, addresses=first.format(n=i), links=down) for i, n in enumerate(NAMES, 1)}
    assert found(answers, backend=Backend.NCCL) == []


def test_hosts_left_out_of_the_attempt_share_their_address() -> None:
    tried = MeshResult(
        "full", None, (), (), (), (OmittedHost("a", "shared"), OmittedHost("b", "shared")), 0.0
    )
    (one,) = found({n: answer(i, "172.17.0.1") for i, n in ((1, "a"), (2, "b"))}, tried)
    assert one.hosts == ("a", "b")
    assert one.evidence[0].text == "172.17.0.1 on a,b"
