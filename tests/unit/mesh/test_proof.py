"""What a mesh proves: connections that were tried, both from and to each host that answered."""

import tracemalloc
from dataclasses import replace

import pytest

from doctor.mesh import Link, Listener, MeshResult, MeshShape, pairs_of, unproved
from doctor.mesh.result import Kind, OmittedHost

MANY = [f"node{number}" for number in range(1, 41)]


def met(names: list[str], shape: MeshShape = "full", head: str | None = None) -> MeshResult:
    """A mesh of that shape in which every connection worked."""
    port = {name: 40000 + number for number, name in enumerate(names)}
    listeners = [Listener(name, "ephemeral", 0, port[name]) for name in names]
    links = [_link(source, target, port[target]) for source, target in pairs_of(names, shape)]
    if head:
        listeners.append(Listener(head, "master", 29500, 29500))
        links += [_link(name, head, 29500, "master") for name in names if name != head]
    return MeshResult(shape, head, tuple(listeners), tuple(links), (), (), 0.5)


def _link(source: str, target: str, port: int, kind: Kind = "ephemeral") -> Link:
    return Link(source, target, "10.0.0.1", port, kind, "ok", tries=1)


@pytest.mark.parametrize("shape", ["full", "sparse", "ring"])
@pytest.mark.parametrize("names", [MANY[:2], MANY[:3], MANY], ids=len)
def test_a_whole_mesh_leaves_nobody_unproved(shape: MeshShape, names: list[str]) -> None:
    assert unproved(met(names, shape, head=names[0]), names, {}) == {}


@pytest.mark.parametrize("shape", ["full", "sparse", "ring", "none"])
def test_a_mesh_that_holds_nothing_proves_nobody(shape: MeshShape) -> None:
    empty = MeshResult(shape, "node1", (), (), (), (), 0.0)
    assert unproved(empty, MANY, {}).keys() == {*MANY}
    assert unproved(replace(empty, listeners=met(MANY).listeners), MANY, {}).keys() == {*MANY}


@pytest.mark.parametrize("shape", ["full", "sparse", "ring"])
def test_a_host_that_the_mesh_does_not_speak_of_is_unproved_alone(shape: MeshShape) -> None:
    whole = met(MANY, shape)
    links = tuple(link for link in whole.links if "node7" not in (link.source, link.target))
    listeners = tuple(each for each in whole.listeners if each.host != "node7")
    assert unproved(replace(whole, links=links, listeners=listeners), MANY, {}).keys() == {"node7"}


@pytest.mark.parametrize("kind", ["ephemeral", "master"])
@pytest.mark.parametrize("shape", ["full", "sparse", "ring"])
def test_a_planned_connection_that_is_not_there_leaves_its_source_unproved(
    shape: MeshShape, kind: Kind
) -> None:
    whole = met(MANY, shape, head="node1")
    lost = next(each for each in whole.links if (each.source, each.kind) == ("node2", kind))
    links = tuple(link for link in whole.links if link is not lost)
    why = unproved(replace(whole, links=links), MANY, {})
    assert why == {"node2": f"node2 -> {lost.target}: not tried"}


def test_what_another_program_holds_is_not_tried() -> None:
    """A master port in use is a separate finding: no host connects to it."""
    whole = met(MANY[:4], head="node1")
    taken = replace(whole.listeners[-1], port=None, error="in-use")
    links = tuple(link for link in whole.links if link.kind != "master")
    assert unproved(replace(whole, listeners=(*whole.listeners[:-1], taken), links=links), MANY[:4], {}) == {}


def test_a_host_alone_with_others_that_took_no_part_is_unproved() -> None:
    twins = tuple(OmittedHost(name, "it shares the data address 10.0.0.9") for name in ("node2", "node3"))
    alone = replace(met([]), left_out=twins)
    why = unproved(alone, ["node1", "node2", "node3"], {})
    assert why.keys() == {"node1", "node2", "node3"}
    assert why["node1"] == "there was no host that it could connect to"


def test_pairs_that_a_full_mesh_did_not_try_take_no_memory() -> None:
    """A recording may call a mesh full that is not: every pair of 10,000 hosts takes 13 GB."""
    names = [f"node{number}" for number in range(500)]
    tracemalloc.start()
    try:
        assert len(unproved(met(names, "ring"), names, {})) == 0
        tracemalloc.reset_peak()
        assert len(unproved(replace(met(names, "ring"), shape="full"), names, {})) == 498, (
            "the last two: all pairs left have an end that is unproved"
        )
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()
