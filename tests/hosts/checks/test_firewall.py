"""Every firewall that a host may run, between hosts that really connect: which rule blocks, and what fixes
it.
"""

from collections.abc import Callable

import pytest

from tests.lab import Host, Lab
from tests.support.batches import batches, prove_each
from tests.support.cases import from_cases
from tests.support.faults import (
    ALONE,
    HCCL,
    Examiner,
    Fault,
    apply_remedy,
    assert_healthy,
    assert_only,
    prove,
    some_of,
    victim,
    words,
)

CLUSTER = "198.18.0.0/16"
USUAL = "ct state established,related accept; iif lo accept; tcp dport 22 accept"

TABLE = "table inet mine {\n chain %s { %s }\n}\n"


def nft_input(rules: str, policy: str = "accept") -> Callable[[Host], None]:
    chain = f"type filter hook input priority 0; policy {policy}; {rules};"
    return lambda host: host.nft(TABLE % ("entry", chain))


def nft_output(host: Host) -> None:
    """Replies may leave, new connections may not."""
    chain = "type filter hook output priority 0; policy drop; oif lo accept; ct state established accept;"
    host.nft(TABLE % ("leave", chain))


def iptables(backend: str) -> Callable[[Host], None]:
    def inject(host: Host) -> None:
        for rule in (
            "-A INPUT -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT",
            "-A INPUT -i lo -j ACCEPT",
            "-A INPUT -p tcp --dport 22 -j ACCEPT",
            "-P INPUT DROP",
        ):
            host.iptables(*rule.split(), backend=backend)

    return inject


EPHEMERAL = "32768:60999"


def raw_and_policy(host: Host) -> None:
    host.iptables("-t", "raw", "-A", "PREROUTING", "-p", "tcp", "--dport", EPHEMERAL, "-j", "DROP")
    iptables("nft")(host)


def without_lo(host: Host) -> None:
    """What people forget who write their first firewall."""
    host.iptables("-A", "INPUT", "-i", "eth0", "-j", "ACCEPT")
    host.iptables("-P", "INPUT", "DROP")


def early(family: str, hook: str) -> Callable[[Host], None]:
    rule = f"type filter hook {hook}; tcp dport {EPHEMERAL.replace(':', '-')} drop;"
    return lambda host: host.nft(f"table {family} early {{\n chain entry {{ {rule} }}\n}}\n")


def blocks(inject: Callable[[Host], object], *says: str, on: str = "any") -> Fault:
    return Fault("firewall-blocks", inject, says=says, on=on)


FAULTS = Fault.table(__file__, "FAULTS", nft_input, iptables, raw_and_policy, early, nft_output, without_lo)


OF_EACH_KIND = (
    *("nft drops", "iptables-legacy", "ufw", "firewalld", "outbound"),
    *("iptables, raw and then the policy", "nft, at the device", "iptables, nothing accepted from lo"),
)


@pytest.mark.parametrize("names", batches(FAULTS, *OF_EACH_KIND, alike=True))
def test_found_in_the_rules_and_fixed_by_the_remedy(names: list[str], examine: Examiner) -> None:
    prove_each({name: FAULTS[name] for name in names}, examine, mended=True)


@pytest.mark.main
def test_a_failed_connection_is_a_symptom_of_the_firewall(examine: Examiner) -> None:
    fault = FAULTS["nft drops"]
    found, *symptoms = prove(Fault(fault.check, fault.inject, args=()), "symptom", examine).trouble
    assert [each["check"] for each in symptoms] == ["port-unreachable"]
    assert symptoms[0]["because"] == found["id"]
    apply_remedy(examine.lab, found)
    assert_healthy(examine())


DIVERTING = from_cases(__file__, "DIVERTING", dict[str, tuple[str, ...]])


@pytest.mark.parametrize("name", DIVERTING)
def test_a_rule_that_sends_connections_elsewhere(name: str, lab: Lab, examine: Examiner) -> None:
    """The host with the rule is named alone, also if connections with one peer fail; the repair is right."""
    tool, hook, rule = DIVERTING[name]
    rule = rule.format(peer=lab["node3"].address)
    if tool == "nft":
        chain = f"type nat hook {hook} priority -100; {rule};"
        lab["node2"].nft(f"table ip forwards {{\n chain entry {{ {chain} }}\n}}\n")
    else:
        lab["node2"].iptables("-t", "nat", "-A", hook, *rule.split())
    outcome = examine()
    found, symptom = outcome.trouble
    assert (found["check"], found["status"], found["hosts"], outcome.code) == (
        "firewall-blocks",
        "fail",
        ["node2"],
        1,
    )
    assert "the firewall diverts what the job needs" in found["summary"]
    assert (symptom["check"], symptom["because"]) == ("port-unreachable", found["id"])
    assert not outcome.unknown
    apply_remedy(lab, found)
    assert_healthy(examine())


UNSEEN = from_cases(__file__, "UNSEEN", dict[str, str])


@pytest.mark.parametrize("name", some_of(UNSEEN, "nft rejects", "outbound"))
def test_found_by_connecting_without_reading_the_rules(name: str, examine: Examiner) -> None:
    """An ordinary user cannot read the rules: only real connections show the fault."""
    fault = FAULTS[name]
    says = (UNSEEN[name],)
    unseen = Fault("port-unreachable", fault.inject, says=says, args=(), on=fault.on, user="trainee")
    outcome = prove(unseen, name, examine)
    assert "firewall-blocks" in outcome.unknown


SILENT = {
    "ufw that lets the cluster in": lambda host: host.ufw_enable(f"allow from {CLUSTER}"),
    "firewalld that lets the cluster in": lambda host: host.firewalld_start(
        f"--zone=trusted --add-source={CLUSTER}"
    ),
    "nft that lets the cluster in": nft_input(f"{USUAL}; ip saddr {CLUSTER} accept", "drop"),
    "a service that is forwarded": lambda host: host.iptables(
        *("-t", "nat", "-A", "PREROUTING", "-p", "tcp", "--dport", "8080"),
        *("-j", "DNAT", "--to-destination", "172.17.0.2:80"),
    ),
    "nft against somebody else": nft_input("ip saddr 203.0.113.7 drop; tcp dport 5432 drop"),
}


@pytest.mark.parametrize("name", SILENT)
def test_an_active_firewall_is_not_a_fault(name: str, lab: Lab, examine: Examiner) -> None:
    SILENT[name](victim(lab, "any", name))
    assert_healthy(examine())


def test_one_pair_is_blocked_in_one_direction(lab: Lab, examine: Examiner) -> None:
    rule = f"{USUAL}; ip saddr {lab['node4'].address} drop"
    nft_input(rule)(lab["node2"])
    (found,) = assert_only(examine(*ALONE), "firewall-blocks", ["node2"])
    assert {place["peer"] for place in found["where"]} == {"node4"}
    (seen,) = assert_only(examine(user="trainee"), "port-unreachable", ["node2", "node4"])
    assert "undecided which of them is at fault" in seen["summary"]
    assert seen["confidence"] == "suspect"
    assert seen["subject"].startswith("node4 -> node2")


def test_a_peer_that_the_head_shuts_out_is_not_blamed(lab: Lab, examine: Examiner) -> None:
    """Most connections of node2 fail, so node2 alone would explain all failures."""
    lab["node1"].iptables(
        "-A", "INPUT", "-s", lab["node2"].address, "-p", "tcp", "!", "--dport", "22", "-j", "DROP"
    )
    (found,) = assert_only(examine(hosts="node[1-3]"), "firewall-blocks", ["node1"])
    apply_remedy(lab, found)
    assert_healthy(examine(hosts="node[1-3]"))


def test_a_rule_that_also_stops_answers_is_one_fault(lab: Lab, examine: Examiner) -> None:
    """Without connection tracking, it also stops the answers to the host's own connections."""
    peer = lab["node4"].address
    lab["node2"].iptables("-I", "INPUT", "-s", peer, "-p", "tcp", "--dport", "1024:", "-j", "REJECT")
    (found,) = assert_only(examine(*ALONE), "firewall-blocks", ["node2"])
    assert found["remedy"]["commands"] == [
        f"sudo iptables -I INPUT -p tcp -s {peer} -j ACCEPT"
        "    # until the next boot; for good: the file of iptables-save"
    ]


def test_a_rule_on_the_ports_of_hccl(lab: Lab, examine: Examiner) -> None:
    """The same rule stops a job over HCCL, and hardly anything else."""
    for host in lab:
        host.sysctl("net.ipv4.ip_local_reserved_ports", "60000-60031")
    nft_input(f"{USUAL}; tcp dport 60000-60031 drop")(lab["node3"])
    assert_healthy(examine(*ALONE))
    (found,) = assert_only(examine(*ALONE, *HCCL), "firewall-blocks", ["node3"])
    assert "HCCL's ports 60000-60031" in words(found)
    (seen,) = assert_only(examine(*HCCL, user="trainee"), "port-unreachable", ["node3"])
    assert "connections to its HCCL's port 60000 get no answer" in seen["summary"]
    assert {place["port"] for place in seen["where"]} == {60000}


def test_a_rule_on_a_port_of_mindspore(lab: Lab, examine: Examiner) -> None:
    """On CPUs, rank r listens on 8118 + 256 r: 8374 is that of rank 1, which is on node2 if each has one."""
    lab["node2"].iptables("-A", "INPUT", "-p", "tcp", "--dport", "8374", "-j", "DROP")
    one_each = ("--ranks-per-host", "1")
    assert_healthy(examine(*ALONE, *one_each))
    (found,) = assert_only(
        examine(*ALONE, *one_each, "--framework", "mindspore"), "firewall-blocks", ["node2"]
    )
    assert "MindSpore's port 8374" in words(found)
    (seen,) = assert_only(
        examine(*one_each, "--framework", "mindspore", user="trainee"), "port-unreachable", ["node2"]
    )
    assert "connections to its MindSpore's ports (8374) get no answer" in seen["summary"]


def test_connections_blame_no_host_when_all_hosts_drop_them(lab: Lab, examine: Examiner) -> None:
    for host in lab:
        nft_input(USUAL, "drop")(host)
    (found,) = assert_only(examine(user="trainee"), "port-unreachable", [])
    assert "common to them all" in found["summary"]
    head, others = assert_only(examine(*ALONE), "firewall-blocks", lab.names)
    assert {len(each["hosts"]) for each in (head, others)} == {1, 3}
    for found in (head, others):
        assert "from all other hosts" in found["actual"]
        apply_remedy(lab, found)
    assert_healthy(examine())
