"""Hosts that lost their ranks without a word, and connections that are cut: what is known of them."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from doctor.hang.advice import advice_of
from doctor.hang.judge import HangState, judge
from doctor.hang.judge.judgement import Cause, HangConfidence
from doctor.live.evidence import Connection, HostEnds, HostEvidence, JobMember, LiveEvidence
from tests.support.hang.written import evidence

NODES = ("node1", "node2", "node3", "node4")


def lacks(seen: LiveEvidence, host: str) -> tuple[str, ...]:
    """The ends of this host that the other ranks still have."""
    number = NODES.index(host) + 1
    wires = [each for one in seen.hosts for m in one.members for each in (m.b.connections if m.b else ())]
    return tuple(f"{each.peer} {each.local}" for each in wires if each.peer.startswith(f"10.0.0.{number}:"))


def lost(hosts: Sequence[str], *gone: str, each: int = 1, **ends: object) -> LiveEvidence:
    """A job with as many ranks on each host; some hosts answer and have neither processes nor connections."""
    ranks = {n: "waits" for n in range(len(hosts) * each) if hosts[n // each] not in gone}
    seen = evidence(ranks, hosts, world=len(hosts) * each, age=600.0)
    made = []
    for host in seen.hosts:
        about = HostEnds(lacks=lacks(seen, host.host), **{"uptime": 90_000.0, **ends})  # type: ignore[arg-type]
        made.append(replace(host, ends=about) if host.host in gone else host)
    return replace(seen, hosts=tuple(made))


def with_member(seen: LiveEvidence, host: str, **changes: object) -> LiveEvidence:
    """Another process on this host."""
    model = seen.hosts[0].members[0]
    other = replace(model, host=host, pid=9_000, **{"a": None, "b": None, "job": "other", **changes})
    hosts = (replace(one, members=(other,)) if one.host == host else one for one in seen.hosts)
    return replace(seen, hosts=tuple(hosts))


def test_the_rank_of_a_host_without_its_sockets_is_gone() -> None:
    found = judge(lost(NODES[:3], "node3"))
    (culprit,) = found.culprits
    assert (culprit.rank, culprit.host, culprit.pid, culprit.cause) == (2, "node3", None, Cause.GONE)
    assert (found.verdict, found.confidence) == (HangState.HANG, HangConfidence.CERTAIN)
    assert culprit.sentence == (
        "was there and is gone: the connections of ranks 0-1 to 10.0.0.3 are half open, and node3 answers and"
        " has no such socket"
    )
    assert not any("could not be looked at" in note for note in found.notes)


def test_why_it_is_gone() -> None:
    (again,) = judge(lost(NODES[:3], "node3", uptime=120.0)).culprits
    assert again.sentence.endswith("; node3 was started again 2 min ago")
    killed = ("7000 812 java", "30 4711 python")
    (by_kernel,) = judge(lost(NODES[:3], "node3", killed=killed)).culprits
    assert by_kernel.sentence.endswith("; its kernel killed python (pid 4711) 30 s ago for lack of memory")
    (before,) = judge(lost(NODES[:3], "node3", killed=("7000 812 python",))).culprits
    assert "killed" not in before.sentence, "that was before the job"


def test_several_hosts_and_ranks() -> None:
    found = judge(lost(NODES, "node3", "node4", each=2))
    assert [(one.rank, one.host) for one in found.culprits] == [
        (4, "node3"),
        (5, "node3"),
        (6, "node4"),
        (7, "node4"),
    ]


def test_a_rank_of_unknown_number_if_another_host_did_not_answer() -> None:
    seen = lost(NODES, "node3")
    hosts = tuple(host for host in seen.hosts if host.host != "node4")
    found = judge(replace(seen, hosts=hosts, unreached={"node4": "refused"}))
    assert [(one.rank, one.host) for one in found.culprits] == [(None, "node3")]
    assert found.sentence == "The job waits for a rank on node3, which cannot go on."
    assert not any("None" in each for each in (*advice_of(found).do, *advice_of(found).commands))


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param(lost(NODES[:3], "node3", unsure="2 Python processes may not be read"), id="hidden"),
        pytest.param(with_member(lost(NODES[:3], "node3"), "node3", rank=None), id="without a number"),
        pytest.param(with_member(lost(NODES[:3], "node3"), "node3", rank=2), id="with its number"),
    ],
)
def test_a_rank_that_may_be_there_is_not_called_gone(seen: LiveEvidence) -> None:
    found = judge(seen)
    assert found.culprits == ()
    assert found.exit_code == 3
    assert [(one.host, one.cause) for one in found.suspects if one.host == "node3"] == [("node3", Cause.GONE)]
    assert "a rank may be there all the same" in found.sentence


def test_nobody_is_gone_while_all_ranks_are_there() -> None:
    """The other end was another program's, such as that of a service."""
    seen = evidence(["waits"] * 3, NODES[:3])
    first, *rest = seen.hosts
    (rank,) = first.members
    assert rank.b is not None
    line = Connection(state="ESTAB", local="10.0.0.1:5", peer="10.0.0.3:80", received=900)
    member = replace(rank, b=replace(rank.b, connections=(*rank.b.connections, line)))
    ends = HostEnds(lacks=("10.0.0.3:80 10.0.0.1:5",))
    hosts = (replace(first, members=(member,)), rest[0], replace(rest[1], ends=ends))
    assert judge(replace(seen, hosts=hosts)).culprits == ()


def test_an_address_that_several_hosts_have_shows_nothing() -> None:
    """As that of a bridge for containers: a rank that uses its own host's is connected to no other host."""
    seen = lost(NODES[:3], "node3")
    assert judge(seen).culprits
    first, second, third = seen.hosts
    assert third.ends
    twice = replace(seen, hosts=(first, replace(second, ends=third.ends), third))
    assert judge(twice).culprits == ()
    own = [replace(host, addresses=("10.0.0.3",)) for host in (first, second)]
    assert judge(replace(seen, hosts=(*own, third))).culprits == ()


def cut(*senders: int, arrives: bool = False, unplugged: str = "") -> LiveEvidence:
    """Ranks 0 and 1 of three, on hosts of their own; these send to each other in vain."""
    seen = evidence(["waits"] * 3, NODES[:3])

    def of(host: HostEvidence) -> HostEvidence:
        (member,) = host.members
        down = (f"eth1 10.0.0.{NODES.index(host.host) + 1}",) if host.host == unplugged else ()
        return replace(host, members=(wired(member),), unplugged=down)

    def wired(member: JobMember) -> JobMember:
        assert member.b is not None
        number = member.rank or 0
        wires = []
        for each in member.b.connections:
            ends = {each.local.rpartition(":")[0], each.peer.rpartition(":")[0]}
            if ends == {"10.0.0.1", "10.0.0.2"}:
                if number in senders:
                    vain = {"unacknowledged": 3, "backoff": 4, "last_acknowledged": 28_000}
                    each = replace(each, acknowledged=9_001, **vain)
                else:
                    each = replace(each, received=9_500 if arrives else 9_000)
            wires.append(each)
        a, b = (look and replace(look, connections=tuple(wires)) for look in (member.a, member.b))
        return replace(member, a=a, b=b)

    return replace(seen, hosts=tuple(map(of, seen.hosts)))


def test_who_sends_in_vain_gives_the_direction() -> None:
    found = judge(cut(1))
    assert [(one.rank, one.cause) for one in found.culprits] == [(0, Cause.LINK), (1, Cause.LINK)]
    (said,) = {one.sentence for one in found.culprits}
    between = "lost the connection between rank 0 on node1 and rank 1 on node2: "
    assert said == f"{between}node2 has sent for 28 s, and node1 acknowledges nothing"
    (back,) = {one.sentence for one in judge(cut(1, arrives=True)).culprits}
    assert back == f"{between}node2 has sent for 28 s; this arrives at node1, whose acknowledgements are lost"
    (both,) = {one.sentence for one in judge(cut(0, 1)).culprits}
    assert both == f"{between}each sends, and gets no acknowledgement"


def test_an_interface_without_a_link() -> None:
    found = judge(cut(1, unplugged="node1"))
    (culprit,) = found.culprits
    assert (culprit.rank, culprit.host) == (0, "node1")
    assert culprit.sentence == "has lost its connection to rank 1 on node2: eth1 of node1 has no link"
    other = judge(cut(1, unplugged="node3"))
    assert {one.rank for one in other.culprits} == {0, 1}, "that host has no part in it"
