"""Failing pairs -> culprits: clusters with injected faults, and cases in which no host can be named."""

from collections.abc import Callable, Iterable
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doctor.mesh.cover import EXACT
from doctor.mesh.culprits import Direction, MeshBlame, culprits, widen
from doctor.mesh.plan import plan_mesh
from doctor.mesh.result import Kind, Link, MeshShape
from tests.support.cases import cases

Broken = Callable[[str, str, Kind], bool]
KINDS: tuple[Kind, ...] = ("hccl", "ephemeral")


def hosts(count: int) -> list[str]:
    return [f"n{i:02}" for i in range(count)]


def link(source: str, target: str, kind: Kind, broken: bool) -> Link:
    return Link(source, target, "10.0.0.1", 1, kind, "dropped" if broken else "ok")


def mesh(
    count: int,
    broken: Broken,
    shape: MeshShape | Literal["auto"] = "full",
    more: Iterable[tuple[str, str]] = (),
    master: bool = True,
) -> list[Link]:
    names = hosts(count)
    plan = plan_mesh({h: f"10.0.0.{i + 1}" for i, h in enumerate(names)}, shape=shape)
    links = [link(a, b, kind, broken(a, b, kind)) for a, b in (*plan.pairs, *more) for kind in KINDS]
    if master:
        links += [link(a, names[0], "master", broken(a, names[0], "master")) for a in names[1:]]
    return links


def cut(host: str, direction: Direction, kinds: Iterable[Kind] = ("master", "hccl", "ephemeral")) -> Broken:
    def broken(source: str, target: str, kind: Kind) -> bool:
        ways = [source] * (direction != "inbound") + [target] * (direction != "outbound")
        return host in ways and kind in tuple(kinds)

    return broken


def named(blames: Iterable[MeshBlame]) -> list[tuple[tuple[str, ...], Direction, bool]]:
    return sorted((b.hosts, b.direction, b.decided) for b in blames)


directions: st.SearchStrategy[Direction] = st.sampled_from(["inbound", "outbound", "both"])


@pytest.mark.slow
@settings(deadline=None)
@given(st.integers(3, 40), st.data())
def test_one_culprit_is_named_exactly(count: int, data: st.DataObject) -> None:
    guilty = data.draw(st.sampled_from(hosts(count)))
    direction = data.draw(directions)
    kinds: tuple[Kind, ...] = data.draw(
        st.sampled_from([("hccl",), ("ephemeral",), KINDS, ("master", *KINDS)])
    )
    blames = culprits(mesh(count, cut(guilty, direction, kinds)))
    assert named(blames) == [((guilty,), direction, True)]
    assert set(KINDS) & set(blames[0].kinds) == set(KINDS) & set(kinds)


@pytest.mark.slow
@settings(deadline=None)
@given(st.integers(6, 40), st.booleans(), st.data())
def test_two_culprits_are_named_exactly(count: int, sparse: bool, data: st.DataObject) -> None:
    one, other = data.draw(st.lists(st.sampled_from(hosts(count)), min_size=2, max_size=2, unique=True))
    first, second = cut(one, a := data.draw(directions)), cut(other, b := data.draw(directions))

    def broken(source: str, target: str, kind: Kind) -> bool:
        return first(source, target, kind) or second(source, target, kind)

    blames = culprits(mesh(count, broken, "auto" if sparse else "full"))
    assert named(blames) == sorted([((one,), a, True), ((other,), b, True)])


@settings(deadline=None)
@given(st.integers(2, 9), st.randoms(use_true_random=False), st.floats(0, 1))
def test_every_failing_link_is_explained_and_no_other(count: int, random: object, share: float) -> None:
    chance = random.random  # type: ignore[attr-defined]
    links = mesh(count, lambda *_: chance() < share)
    explained = {x for blame in culprits(links) for x in blame.links}
    assert explained == {x for x in links if x.failed}
    assert all(set(b.hosts) <= set(hosts(count)) and bool(b.hosts) != b.common for b in culprits(links))


def test_without_a_failure_no_host_is_blamed() -> None:
    assert culprits(mesh(5, lambda *_: False)) == ()
    assert culprits([]) == ()


def test_two_hosts_are_a_tie() -> None:
    assert named(culprits(mesh(2, cut("n01", "inbound")))) == [(("n00", "n01"), "pair", False)]
    assert named(culprits(mesh(2, lambda *_: True))) == [(("n00", "n01"), "pair", False)]


@pytest.mark.parametrize("count", [3, 8, 40])
def test_one_bad_pair_among_good_ones_names_both(count: int) -> None:
    blames = culprits(mesh(count, lambda a, b, _: (a, b) == ("n02", "n01")))
    assert named(blames) == [(("n01", "n02"), "pair", False)]


def test_a_host_that_some_do_not_reach_is_a_suspect() -> None:
    blames = culprits(mesh(9, lambda a, b, _: b == "n01" and a in ("n05", "n06", "n07")))
    assert named(blames) == [(("n01",), "inbound", False)]


@pytest.mark.parametrize("count", [3, 8, 40])
def test_if_every_link_fails_the_cause_is_common(count: int) -> None:
    (blame,) = culprits(mesh(count, lambda *_: True, "auto"))
    assert (blame.hosts, blame.common, blame.kinds) == ((), True, ("master", "hccl", "ephemeral"))


def test_one_kind_of_port_fails_everywhere() -> None:
    (blame,) = culprits(mesh(5, lambda _a, _b, kind: kind == "hccl"))
    assert (blame.hosts, blame.common, blame.kinds) == ((), True, ("hccl",))


def test_common_cause_does_not_hide_another_fault() -> None:
    blames = culprits(mesh(6, lambda a, b, kind: kind == "hccl" or cut("n03", "outbound")(a, b, kind)))
    assert [(b.hosts, b.common) for b in blames] == [((), True), (("n03",), False)]


@pytest.mark.parametrize("count", [3, 40])
def test_master_port_blocked_on_the_head(count: int) -> None:
    (blame,) = culprits(mesh(count, lambda _a, _b, kind: kind == "master"))
    assert (blame.hosts, blame.direction, blame.kinds, blame.decided) == (
        ("n00",),
        "inbound",
        ("master",),
        True,
    )


def test_master_port_open_but_ephemeral_ports_dropped() -> None:
    (blame,) = culprits(mesh(4, cut("n00", "inbound", ("ephemeral",))))
    assert (blame.hosts, blame.direction, blame.kinds) == (("n00",), "inbound", ("ephemeral",))


def test_one_host_alone_does_not_reach_the_master_port() -> None:
    """There is only one connection: either the head refuses it, or the host fails to open it."""
    (blame,) = culprits(mesh(8, lambda a, _b, kind: a == "n03" and kind == "master"))
    assert (blame.hosts, blame.direction, blame.kinds) == (("n00", "n03"), "pair", ("master",))


def test_an_unreached_host_is_not_blamed_for_not_reaching_another_one() -> None:
    blames = culprits(mesh(6, lambda _a, b, _k: b in ("n00", "n03")))
    assert named(blames) == [(("n00",), "inbound", True), (("n03",), "inbound", True)]


def test_firewall_on_most_hosts_names_each() -> None:
    blames = culprits(mesh(8, lambda _a, b, _k: b != "n00"))
    assert named(blames) == [((h,), "inbound", True) for h in hosts(8)[1:]]


def test_more_culprits_than_the_exact_solver_can_handle() -> None:
    guilty = hosts(40)[1 : EXACT + 8]
    blames = culprits(mesh(40, lambda _a, b, _k: b in guilty))
    assert named(blames) == [((h,), "inbound", True) for h in guilty]


@cases
def test_cluster_split_in_two(group: tuple[str, ...], decided: bool) -> None:
    blames = culprits(mesh(8, lambda a, b, _: (a in group) != (b in group)))
    assert named(blames) == [(group if decided else tuple(hosts(8)), "split", decided)]


def test_untested_links_prove_nothing() -> None:
    links = mesh(3, lambda *_: False) + [Link("n00", "n01", "10.0.0.2", 1, "hccl", "untested")] * 9
    assert culprits(links) == ()


def test_only_one_host_could_listen() -> None:
    links = [link(a, "n00", "ephemeral", True) for a in hosts(5)[1:]]
    assert named(culprits(links)) == [(("n00",), "inbound", True)]


def test_only_links_of_suspects_are_tested_again() -> None:
    names = hosts(64)
    assert widen(names, mesh(64, cut("n05", "inbound"), "auto")) == ()

    def bad_pair(a: str, b: str, _: Kind) -> bool:
        return (a, b) == ("n02", "n03")

    more = widen(names, mesh(64, bad_pair, "auto"))
    assert len(more) == len(set(more)) > 150
    assert all({"n02", "n03"} & set(pair) for pair in more)
    again = mesh(64, bad_pair, "auto", more)
    assert widen(names, again) == ()
    assert named(culprits(again)) == [(("n02", "n03"), "pair", False)]


def test_the_number_of_additional_links_is_bounded() -> None:
    more = widen(
        hosts(64), mesh(64, lambda a, b, _: (int(a[1:]) * 7 + int(b[1:])) % 5 == 0, "auto", master=False)
    )
    assert len(more) < 8 * 2 * 64


def test_additional_links_find_the_guilty_host_on_a_ring() -> None:
    def broken(a: str, b: str, _: Kind) -> bool:
        return b == "n05" and a != "n04"

    ring = mesh(40, broken, "ring", master=False)
    assert not culprits(ring)[0].decided
    wider = mesh(40, broken, "ring", widen(hosts(40), ring), master=False)
    assert named(culprits(wider)) == [(("n05",), "inbound", True)]
