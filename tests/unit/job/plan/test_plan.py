"""The plan of the job: the source of each value, and what is computed from the hosts."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from doctor.devices import AMD, ASCEND, NVIDIA, Vendor
from doctor.job.plan import GUESSES, HostView, JobPlan, draft, is_loopback, matching_interfaces, settle
from doctor.job.wishes import JobWishes
from doctor.model import Backend, Host, SourcedValue
from tests.support.cases import cases

OWN = {"lo": ("127.0.0.1",), "eth0": ("10.0.0.1", "fd00::1"), "ib0": ("10.1.0.1",)}


def sight(**more: Any) -> HostView:
    return HostView(**{"addresses": OWN, "default_interface": "eth0", **more})


def settled(
    sights: Mapping[str, HostView], hosts: Sequence[Host] = (), wishes: JobWishes | None = None
) -> JobPlan:
    return settle(draft(hosts or [Host(name, name) for name in ("a", "b")], wishes or JobWishes()), sights)


def env(**variables: str) -> JobWishes:
    return JobWishes(env=variables)


def test_defaults() -> None:
    plan = draft([Host("b", "b"), Host("a", "a")], JobWishes())
    assert (plan.backend, plan.head) == (
        SourcedValue(Backend.GLOO, "default"),
        SourcedValue("b", "first host"),
    )
    assert (plan.master_port, plan.ranks) == (SourcedValue(29500, "default"), 0)
    assert (plan.hccl_ports[0], plan.hccl_ports[-1]) == (60000, 60031)


def test_wishes_override_defaults() -> None:
    wishes = JobWishes(
        backend=SourcedValue(Backend.NCCL, "--backend"),
        head=SourcedValue("a", "inventory"),
        master_port=SourcedValue(1234, "--master-port"),
        ranks_per_host=SourcedValue(8, "--ranks-per-host"),
    )
    plan = settled({}, [Host("b", "b"), Host("a", "a", ranks=2)], wishes)
    assert (plan.backend, plan.head, plan.master_port) == (wishes.backend, wishes.head, wishes.master_port)
    assert [host.ranks for host in plan.hosts] == [SourcedValue(8, "--ranks-per-host")] * 2
    assert plan.ranks == 16


LISTED = "hostfile or inventory"


@pytest.mark.parametrize(
    ("host", "devices", "ranks"),
    [
        (Host("a", "a", ranks=4, expected={"devices": "8"}), {NVIDIA: 2}, SourcedValue(4, LISTED)),
        (Host("a", "a", expected={"devices": "8"}), {NVIDIA: 2}, SourcedValue(8, "devices expected")),
        (Host("a", "a", expected={"devices": "0"}), {NVIDIA: 2}, SourcedValue(2, "devices found")),
        (Host("a", "a", expected={"devices": "many"}), {NVIDIA: 2}, SourcedValue(2, "devices found")),
        (Host("a", "a"), {}, SourcedValue(2, "default")),
    ],
)
def test_ranks_of_a_host(host: Host, devices: dict[Vendor, int], ranks: SourcedValue[int]) -> None:
    assert settled({"a": sight(devices=devices)}, [host]).hosts[0].ranks == ranks


@cases
def test_hccl_ports(base: str, first: int) -> None:
    plan = draft([Host("a", "a")], env(HCCL_IF_BASE_PORT=base))
    assert plan.hccl_ports == range(first, first + 32)


@pytest.mark.parametrize(
    ("counts", "backend"),
    [
        ([{}, {}], SourcedValue(Backend.GLOO, "no accelerator found")),
        ([{}, {NVIDIA: 1}], SourcedValue(Backend.NCCL, "devices found")),
        ([{NVIDIA: 8}, {ASCEND: 8}], SourcedValue(Backend.HCCL, "devices found")),
        ([{AMD: 8}, {}], SourcedValue(Backend.NCCL, "devices found")),
    ],
)
def test_backend_auto(counts: list[dict[Vendor, int]], backend: SourcedValue[Backend]) -> None:
    sights = {name: sight(devices=found) for name, found in zip("ab", counts, strict=True)}
    assert settled(sights).backend == backend
    assert settled({}).backend == SourcedValue(Backend.GLOO, "default")


def by_peers(*addresses: str) -> HostView:
    return HostView(names={"a": addresses})


@cases
def test_data_address(
    host: Host,
    variables: dict[str, str],
    peers: tuple[str, ...],
    own: dict[str, Any] | None,
    data: tuple[str, str] | None,
) -> None:
    """The strongest source comes first."""
    sights = {"b": by_peers(*peers)} | ({host.name: sight(**own)} if own is not None else {})
    wishes = env(**variables)
    plan = settled(sights, [host, Host("b", "b")], wishes)
    found = plan.hosts[0].data
    assert (found and (found.value, found.source)) == data
    assert plan.data_address(host.name) == (data and data[0])


def test_a_host_does_not_vote_for_its_own_address() -> None:
    own = sight(names={"a": ("127.0.1.1",)})
    assert settled({"a": own, "b": by_peers("10.1.0.1")}).data_address("a") == "10.1.0.1"


def test_only_unresolved_addresses_are_guesses() -> None:
    guessed = settled({"a": sight(), "b": by_peers()}).hosts[0].data
    resolved = settled({"a": sight(), "b": by_peers("10.1.0.1")}).hosts[0].data
    assert guessed is not None
    assert resolved is not None
    assert (guessed.source in GUESSES, resolved.source in GUESSES) == (True, False)


@cases
def test_nccl_matches_interfaces_by_prefix_or_name(wish: str, chosen: list[str]) -> None:
    interfaces = dict.fromkeys(["lo", "eth0", "eth1", "eth01", "ib0", "docker0"])
    if wish == "eth":
        del interfaces["eth01"]
    assert matching_interfaces("NCCL_SOCKET_IFNAME", wish, interfaces) == chosen


@pytest.mark.parametrize(("wish", "chosen"), [("eth", []), ("eth0", ["eth0"]), ("ib0,eth0", ["eth0", "ib0"])])
def test_gloo_takes_interface_names_literally(wish: str, chosen: list[str]) -> None:
    assert matching_interfaces("GLOO_SOCKET_IFNAME", wish, dict.fromkeys(["eth0", "ib0"])) == chosen


@cases
def test_loopback(address: str, loopback: bool) -> None:
    assert is_loopback(address) is loopback


@cases
def test_ranks_on_amd_gpus_are_those_that_no_variable_hides(said: dict[str, str], ranks: int) -> None:
    found = settled({"a": sight(devices={AMD: 8})}, [Host("a", "a")], env(**said))
    assert (found.backend.value, found.vendor) == (Backend.NCCL, AMD)
    assert found.hosts[0].ranks == SourcedValue(ranks, "devices found")


def test_instinct_gpus_without_a_driver_are_what_the_job_is_for() -> None:
    found = settled({"a": sight(plugged_in={AMD: 8, NVIDIA: 1})}, [Host("a", "a")])
    assert (found.backend, found.vendor) == (SourcedValue(Backend.NCCL, "on the PCI bus"), AMD)
    assert found.hosts[0].ranks == SourcedValue(8, "on the PCI bus")


def test_one_card_for_a_screen_does_not_make_a_job_on_gpus() -> None:
    hosts, card = [Host(name, name) for name in "abcd"], {"plugged_in": {NVIDIA: 1}, "screens": {NVIDIA: 1}}
    one = {name: sight(**card) if name == "b" else sight() for name in "abcd"}
    assert (settled(one, hosts).backend.value, settled(one, hosts).vendor) == (Backend.GLOO, None)
    every = {name: sight(**card) for name in "abcd"}
    assert settled(every, hosts).vendor is NVIDIA


def test_ranks_are_the_devices_that_the_job_may_see() -> None:
    env = {"ASCEND_RT_VISIBLE_DEVICES": "0,1,2,3"}
    sight = HostView(devices={ASCEND: 8})
    hosts = [Host("a", "a"), Host("b", "b")]
    found = settle(draft(hosts, JobWishes(env=env)), {"a": sight})
    assert [host.ranks for host in found.hosts] == [
        SourcedValue(4, "devices found"),
        SourcedValue(4, "like the other hosts"),
    ], "b did not answer"

    def beside(other: HostView) -> SourcedValue[int] | None:
        return settle(draft(hosts, JobWishes()), {"a": sight, "b": other}).hosts[1].ranks

    assert beside(HostView()) == SourcedValue(8, "like the other hosts"), "what b has could not be read"
    assert beside(HostView(devices={ASCEND: 0})) == SourcedValue(2, "default")
    assert beside(HostView(devices={ASCEND: 0}, plugged_in={ASCEND: 8})) == SourcedValue(8, "on the PCI bus")
