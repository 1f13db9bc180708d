"""port-unreachable on the results of a mesh: facts in, problems out."""

import contextlib
from dataclasses import replace
from typing import Any

import pytest

from doctor.api import Here, Undecided
from doctor.facts.limits import Ports
from doctor.firewall import combine, parse_iptables_save
from doctor.job.plan import JobPlan, draft
from doctor.job.wishes import JobWishes
from doctor.judge.registry import find_checks
from doctor.mesh import Link, MeshResult
from doctor.model import Host, HostStatus, Problem, Severity, SourcedValue, Status
from tests.support.cases import cases, from_cases
from tests.support.recordings import heard, mesh, recording, report

(CHECK,) = (check for check in find_checks().checks if check.id == "port-unreachable")
NAMES = ["a", "b", "c"]


def judged(seen: MeshResult) -> int:
    """The number of problems; raises Undecided as the check does."""
    plan = draft([Host(name, name) for name in NAMES], JobWishes())
    return len(list(CHECK.run(seen, NAMES, plan, {}, {}, {}, {}, {}, {}, {})))


def test_every_host_reached_every_other() -> None:
    assert judged(mesh(NAMES)) == 0


@cases
def test_a_host_that_was_tested_in_one_direction_only_is_not_proved(end: str, words: str) -> None:
    """`a` took part in one direction only: whatever the others report, the other direction is unknown."""
    whole = mesh(NAMES)
    other = {"source": "target", "target": "source"}[end]
    links = tuple(link for link in whole.links if getattr(link, other) != "a")
    with pytest.raises(Undecided, match=words) as caught:
        judged(replace(whole, links=links))
    assert caught.value.hosts == ("a",)


def test_links_that_were_not_tested_prove_nothing() -> None:
    whole = mesh(NAMES)
    links = tuple(replace(link, outcome="untested") for link in whole.links)
    with pytest.raises(Undecided) as caught:
        judged(replace(whole, links=links))
    assert set(caught.value.hosts) == set(NAMES)


ALIASES = ["left", "right"]


def test_a_guessed_address_that_is_not_reached_is_undecided() -> None:
    """The hosts report other names than those that the user typed, so nothing shows their addresses."""
    answers = {
        name: heard(number, ALIASES, names=f"? box{number}\n10.0.0.{number} STREAM box{number}")
        for number, name in enumerate(ALIASES, 1)
    }
    hosts = tuple(Host(name, "192.0.2.9") for name in ALIASES)
    apart = mesh(ALIASES, ("left", "right"), ("right", "left"))
    for seen, code in ((mesh(ALIASES), 0), (apart, 3)):
        of = report(recording(ALIASES, heard=answers, hosts=hosts, mesh=seen))
        assert {host.data.source for host in of.plan.hosts if host.data} == {"default route"}
        assert of.exit_code == code
    assert {host.status for host in of.hosts} == {HostStatus.UNEXAMINED}
    told = {found.status: found for found in of.findings if found.check == "port-unreachable"}
    assert told.keys() == {Status.WARN, Status.UNKNOWN}
    assert set(told[Status.UNKNOWN].hosts) == set(ALIASES)
    assert "the data address that was tried is a guess" in told[Status.UNKNOWN].summary


DROP = from_cases(__file__, "DROP", str)


RULES = combine(iptables=parse_iptables_save(DROP, "ip", "iptables-nft"))
PORTS = Ports(4096, 2048, range(32768, 61000), ())
(BLOCKS,) = (check for check in find_checks().checks if check.id == "firewall-blocks")


@pytest.mark.parametrize("back", ["dropped", "ok"])
def test_what_a_kernel_refuses_to_send_is_the_fault_of_its_host(back: str) -> None:
    """Routes and rules of IPv6 are not read; if they prevent a connection, `connect` itself fails."""
    whole = mesh(NAMES)
    seen: Any = {("a", "b"): "error", ("b", "a"): back}
    links = tuple(replace(each, outcome=seen.get((each.source, each.target), "ok")) for each in whole.links)
    plan = draft([Host(name, name) for name in NAMES], JobWishes())
    (problem,) = CHECK.run(replace(whole, links=links), NAMES, plan, {}, {}, {}, {}, {}, {}, {})
    assert problem.hosts == ("a",)
    assert problem.commands[0] == "ip route get 10.0.0.2"
    assert len(problem.where) == (1 if back == "ok" else 2)


def closing(rule: str) -> str:
    """The firewall of a host with this rule, as a host prints it."""
    return (
        f"== iptables-legacy\n*filter\n:INPUT ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n{rule}\nCOMMIT\n== end 0\n"
    )


def of_the_head(rule: str) -> list[tuple[str, tuple[str, ...], str | None]]:
    """The findings if `b` and the head do not reach each other, and the head has this rule."""
    seen = mesh(NAMES, ("a", "b"), ("b", "a"))
    knocks = tuple(Link(n, "a", "10.0.0.1", 29500, "master", "dropped" if n == "b" else "ok") for n in "bc")
    hosts = tuple(Host(name, f"10.0.0.{n}") for n, name in enumerate(NAMES, 1))
    answers = {
        name: heard(n, NAMES, firewall=closing(rule if n == 1 else "")) for n, name in enumerate(NAMES, 1)
    }
    of = recording(NAMES, hosts=hosts, heard=answers, mesh=replace(seen, links=(*seen.links, *knocks)))
    found = [each for each in report(of).findings if each.status is Status.FAIL]
    ids = {each.id: each.check for each in found}
    return [(each.check, each.hosts, ids.get(each.because or "")) for each in found]


@cases
def test_a_peer_that_the_head_shuts_out_is_not_blamed(rule: str) -> None:
    """Most of the peer's attempts are to the head, so that the peer alone would explain all failures."""
    assert of_the_head(rule) == [
        ("firewall-blocks", ("a",), None),
        ("port-unreachable", ("a",), "firewall-blocks"),
    ]


@pytest.mark.parametrize(("ranks", "status"), [(1, Status.WARN), (2, Status.FAIL)])
def test_connections_prove_only_the_port_of_a_host_s_first_rank_of_mindspore(
    ranks: int, status: Status
) -> None:
    """The rules of `b` stop the ports of all its ranks, and yet connections to the first one got through."""
    first = 8118 + 256 * ranks
    ports = ",".join(str(first + 256 * local) for local in range(ranks))
    rule = f"-A INPUT -p tcp -m multiport --dports {ports} -j DROP"
    whole = mesh(NAMES)
    links = [Link(n, "b", "10.0.0.2", first, "mccl", "ok") for n in "ac"]
    answers = {
        name: heard(n, NAMES, firewall=closing(rule if n == 2 else "")) for n, name in enumerate(NAMES, 1)
    }
    wishes = JobWishes(
        framework=SourcedValue("mindspore", "--framework"),
        ranks_per_host=SourcedValue(ranks, "--ranks-per-host"),
    )
    of = recording(NAMES, wishes=wishes, heard=answers, mesh=replace(whole, links=(*whole.links, *links)))
    found = [each for each in report(of).findings if each.check == "firewall-blocks" and "b" in each.hosts]
    assert [each.status for each in found] == [status]


def test_rules_explain_no_connection_between_two_versions_of_ip() -> None:
    """None is ever tried, but a check does not rely on it."""
    whole = mesh(NAMES, ("b", "a"), ("c", "a"))
    links = tuple(replace(each, address="fd00::1") if each.target == "a" else each for each in whole.links)
    job = with_data("fd00::1", "10.0.0.2", "10.0.0.3")
    known: Any = {"a": RULES}, {"a": PORTS}
    (problem,) = CHECK.run(replace(whole, links=links), NAMES, job, {}, {}, {}, {}, {}, *known)
    assert problem.hosts == ("a",)


@pytest.mark.parametrize("rule", ["", "-A INPUT -s 10.0.0.3/32 -p udp -j DROP"])
def test_a_peer_is_blamed_if_no_rule_explains_it(rule: str) -> None:
    assert any(check == "port-unreachable" and "b" in hosts for check, hosts, _ in of_the_head(rule))


def with_data(*addresses: str) -> JobPlan:
    hosts = [Host(name, name, data=data) for name, data in zip(NAMES, addresses, strict=True)]
    return draft(hosts, JobWishes())


@pytest.mark.parametrize("other", ["fd00::3", "FD00:0:0::3", "::ffff:10.0.0.3", "node3-ib", "fe80::3%eth0"])
def test_rules_are_followed_for_peers_of_the_same_family(other: str) -> None:
    job = with_data("10.0.0.1", "10.0.0.2", other)
    here = Here("a", is_head=True)
    (problem,) = BLOCKS.run(RULES, {"eth0": ("10.0.0.1",)}, PORTS, job, here, None)
    assert problem.summary == "the firewall drops what the job needs from other hosts"
    mapped = other.startswith("::ffff:")
    peers = ("10.0.0.1", "10.0.0.2/31") if mapped else ("10.0.0.2",)
    lasts = "    # until the next boot; for good: the file of iptables-save"
    assert problem.commands == tuple(
        f"sudo iptables -I INPUT -p tcp -s {peer} -j ACCEPT{lasts}" for peer in peers
    )


def test_rules_say_nothing_where_all_peers_are_of_the_other_family() -> None:
    hosts = [
        Host(name, name, data=data)
        for name, data in zip(NAMES, ("10.0.0.1", "10.0.0.2", "fd00::3"), strict=True)
    ]
    with pytest.raises(Undecided, match="no other host has an IPv6 data address"):
        list(
            BLOCKS.run(
                RULES, {"eth0": ("fd00::3",)}, PORTS, draft(hosts, JobWishes()), Here("c", False), None
            )
        )


def test_a_limit_is_a_warning_that_leaves_the_host_unproved() -> None:
    many = "-A INPUT -p tcp -m connlimit --connlimit-above 4 -j REJECT"
    rules = combine(iptables=parse_iptables_save(f"*filter\n:INPUT ACCEPT [0:0]\n{many}\nCOMMIT\n", "ip"))
    found = BLOCKS.run(
        rules,
        {"eth0": ("10.0.0.1",)},
        PORTS,
        with_data("10.0.0.1", "10.0.0.2", "10.0.0.3"),
        Here("a", is_head=True),
        None,
    )
    problem = next(found)
    assert problem.summary == "the firewall limits what the job needs from other hosts"
    assert "depends on the number of connections" in problem.actual
    assert problem.severity is Severity.WARN
    with pytest.raises(Undecided, match="the number of connections") as caught:
        next(found)
    assert caught.value.essential


@cases
def test_a_rule_that_diverts_connections_is_a_fault_if_they_fail(
    match: str, outcome: Any, told: bool
) -> None:
    """A rule that may not match them, and one whose connections work or were not tried, leave it open."""
    nat = f"*nat\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -p tcp -m tcp {match} -j REDIRECT\nCOMMIT\n"
    tried = mesh(NAMES)
    links = [replace(each, outcome=outcome) if each.target == "b" else each for each in tried.links]
    seen = replace(tried, links=tuple(links)) if outcome else None
    job = with_data("10.0.0.1", "10.0.0.2", "10.0.0.3")
    rules = combine(iptables=parse_iptables_save(nat, "ip"))
    found = BLOCKS.run(rules, {"eth0": ("10.0.0.2",)}, PORTS, job, Here("b", is_head=False), seen)
    problems: list[Problem] = []
    with contextlib.suppress(Undecided):
        problems.extend(found)
    assert bool(problems) == told
    if told:
        assert problems[0].summary == "the firewall diverts what the job needs from other hosts"
