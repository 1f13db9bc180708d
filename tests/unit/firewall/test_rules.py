"""Decisions on recorded rule sets, without a kernel: which rule blocks which ports and peers."""

import pytest

from doctor.firewall import Action, Manager, Ruleset, combine, parse_iptables_save, parse_nft
from doctor.text.addresses import Holders
from tests.support.cases import cases
from tests.support.firewall import EPHEMERAL, decide
from tests.support.paths import ROOT

SAMPLES = ROOT / "tests" / "samples" / "firewall"
HERE, PEER, BAD, FAR = "198.18.0.1", "198.18.0.2", "198.18.0.66", "203.0.113.9"


def sample(name: str) -> Ruleset:
    """All parts of one recorded host together, as a probe would return them."""

    def text(ending: str) -> str:
        path = SAMPLES / f"{name}.{ending}"
        return path.read_text() if path.exists() else ""

    saves = parse_iptables_save(text("save4"), "ip") + parse_iptables_save(text("save6"), "ip6")
    return combine(parse_nft(text("nft.json")), saves + parse_iptables_save(text("legacy4"), "ip"))


def nft(body: str) -> Ruleset:
    """A rule set with one inet table whose input chain drops, and these rules in nft's JSON."""
    head = (
        '{"nftables": [{"table": {"family": "inet", "name": "t"}}, '
        '{"chain": {"family": "inet", "table": "t", '
        '"name": "i", "type": "filter", "hook": "input", "prio": 0, "policy": "drop"}}, '
    )
    return combine(parse_nft(head + body + "]}"))


def test_without_rules_all_is_accepted() -> None:
    decision = decide(combine(), PEER, HERE, 29500)
    assert (decision.action, decision.manager, decision.rule) == (Action.ACCEPT, None, "")


@cases
def test_recorded_hosts(name: str, source: str, port: int, action: Action, manager: Manager) -> None:
    decision = decide(sample(name), source, HERE, port, "eth0")
    assert decision.action is action, decision
    assert decision.manager is manager, decision


@pytest.mark.parametrize("name", sorted({path.name.split(".")[0] for path in SAMPLES.glob("*.*4*")}))
def test_usual_firewalls_let_no_traffic_decide_about_a_job(name: str) -> None:
    """ufw limits its logs and SSH; Kubernetes spreads the connections to its own ports by chance."""
    for ends, incoming in (((PEER, HERE), True), ((HERE, PEER), False)):
        spans = sample(name).decide_ports(*ends, 32768, 60999, "eth0", EPHEMERAL, incoming=incoming)
        assert not [span for span in spans if span.decision.varies]


def test_the_decision_names_the_rule() -> None:
    decision = decide(sample("ufw_port_range"), BAD, HERE, 29511, "eth0")
    assert (decision.table, decision.chain) == ("ip filter", "ufw-user-input")
    assert decision.rule == "-A ufw-user-input -s 198.18.0.66/32 -p tcp -m tcp --dport 29511 -j DROP"
    policy = decide(sample("ufw_allow_subnet"), FAR, HERE, 1, "eth0")
    assert (policy.chain, policy.rule) in {
        ("INPUT", "policy drop"),
        ("ufw-skip-to-policy-input", policy.rule),
    }
    rich = decide(sample("firewalld_rich"), BAD, HERE, 29512, "eth0")
    assert rich.rule == "ip saddr 198.18.0.66 tcp dport 29512 drop"


def test_an_unknown_decision_names_what_it_depends_on() -> None:
    assert "recent" in decide(sample("ufw_port_range"), PEER, HERE, 2222, "eth0").reason
    assert "DNAT" in decide(sample("kube_legacy"), PEER, HERE, 29510, "eth0").reason


def test_an_unknown_interface_leaves_a_decision_open_only_where_it_matters() -> None:
    assert decide(sample("ufw_allow_subnet"), PEER, HERE, 29500).action is Action.ACCEPT
    assert decide(sample("ufw_allow_subnet"), FAR, HERE, 29500).action is Action.DROP
    assert decide(sample("firewalld_trusted"), PEER, HERE, 40000).action is Action.UNKNOWN
    assert decide(sample("firewalld_drop_zone"), PEER, HERE, 40000).blocked


def test_the_loopback_is_accepted() -> None:
    for name in ("ufw_allow_subnet", "firewalld_default", "firewalld_iptables"):
        assert decide(sample(name), HERE, HERE, 40000).action is Action.ACCEPT


def test_ipv6_has_its_own_rules() -> None:
    assert decide(sample("ufw_allow_subnet"), "fd00::2", "fd00::1", 29500, "eth0").action is Action.DROP
    assert decide(sample("ufw_port_range"), "fd00::2", "fd00::1", 29500, "eth0").action is Action.ACCEPT
    assert decide(sample("ufw_allow_subnet"), "::ffff:198.18.0.2", HERE, 1, "eth0").action is Action.ACCEPT


def test_outbound() -> None:
    for name in ("ufw_allow_subnet", "firewalld_default", "firewalld_drop_zone", "kube_nft", "kube_legacy"):
        assert decide(sample(name), HERE, PEER, 29500, "eth0", incoming=False).action is Action.ACCEPT


def test_port_ranges_are_exact() -> None:
    spans = sample("firewalld_rich").decide_ports(PEER, HERE, 29490, 60999, "eth0", EPHEMERAL)
    shown = [(str(span), span.decision.action.value) for span in spans]
    assert shown == [
        ("29490-29499", "reject"), ("29500-29600", "accept"), ("29601-59999", "reject"),
        ("60000-60031", "accept"), ("60032-60999", "reject"),
    ]  # fmt: skip
    single = sample("ufw_port_range").decide_ports(BAD, HERE, 29500, 29600, "eth0", EPHEMERAL)
    assert [str(span) for span in single if span.decision.blocked] == ["29511"]


@pytest.mark.parametrize("name", ["ufw_port_range", "firewalld_rich", "firewalld_iptables", "kube_nft"])
def test_spans_give_the_same_decision_as_each_port(name: str) -> None:
    rules = sample(name)
    spans = rules.decide_ports(BAD, HERE, 29495, 29605, "eth0", EPHEMERAL)
    each = [span.decision for span in spans for _ in range(span.first, span.last + 1)]
    assert each == [decide(rules, BAD, HERE, port, "eth0") for port in range(29495, 29606)]


def test_peers_that_no_rule_distinguishes_are_decided_together() -> None:
    peers = [f"198.18.0.{n}" for n in range(2, 200)]
    holders = Holders({address: address for address in (*peers, FAR)})
    groups = list(holders.stretches(4, sample("firewalld_rich").address_cuts))
    assert sorted(map(len, groups)) == [1, 1, 64, 133]
    assert [BAD] in [group.others("") for group in groups]


def test_a_table_that_two_tools_show_counts_once() -> None:
    rules = sample("kube_nft")
    assert {table.tool for table in rules.tables} == {"iptables-nft"}
    other = (SAMPLES / "kube_nft.save4").read_text().replace("-A INPUT -j KUBE-FIREWALL\n", "")
    both = combine(parse_nft((SAMPLES / "kube_nft.nft.json").read_text()), parse_iptables_save(other, "ip"))
    assert [table.title for table in both.tables].count("ip filter") == 2


def test_a_mark_of_the_mangle_table_is_there_in_the_filter_table() -> None:
    """The table of addresses (nat) comes last on the way in, and mangle does not."""
    mangle = "*mangle\n:INPUT ACCEPT [0:0]\n-A INPUT -j MARK --set-mark 1\nCOMMIT\n"
    marked = "*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -m mark --mark 1 -j DROP\nCOMMIT\n"
    rules = combine(iptables=parse_iptables_save(mangle + marked, "ip"))
    assert decide(rules, PEER, HERE, 29500).action is Action.DROP
    late = combine(iptables=parse_iptables_save(mangle.replace("mangle", "nat") + marked, "ip"))
    assert decide(late, PEER, HERE, 29500).action is Action.ACCEPT


def test_parts_of_iptables_that_nft_does_not_show_are_undecided() -> None:
    rules = combine(parse_nft((SAMPLES / "ufw_port_range.nft.json").read_text()))
    decision = decide(rules, PEER, HERE, 2222, "eth0")
    assert decision.action is Action.UNKNOWN
    assert "which nft does not show" in decision.reason or "not shown by nft" in decision.reason


def test_an_unknown_statement_leaves_the_decision_open() -> None:
    rule = '{"rule": {"family": "inet", "table": "t", "chain": "i", "expr": [%s]}}'
    for strange in (
        '{"brand new": 1}',
        '{"xt": null}',
        '"?"',
        '{"vmap": {"key": 3}}',
        '{"match": {"op": "=="}}',
    ):
        decision = decide(nft(rule % (strange + ', {"accept": null}')), PEER, HERE, 1, "eth0")
        assert decision.action is Action.UNKNOWN, strange
    decided = decide(nft(rule % '{"xt": null}, {"drop": null}'), PEER, HERE, 1, "eth0")
    assert decided.action is Action.UNKNOWN


@cases
def test_notrack_acts_before_tracking(priority: int, action: Action) -> None:
    """Which comes first at the priority of tracking itself, no tool shows."""
    rules = nft(
        '{"chain": {"family": "inet", "table": "t", "name": "raw", "type": "filter", "hook": "prerouting", '
        f'"prio": {priority}, "policy": "accept"}}}}, '
        '{"rule": {"family": "inet", "table": "t", "chain": "raw", "expr": [{"notrack": null}]}}, '
        '{"rule": {"family": "inet", "table": "t", "chain": "i", "expr": [{"match": {"op": "in", '
        '"left": {"ct": {"key": "state"}}, "right": "untracked"}}, {"drop": null}]}}, '
        '{"rule": {"family": "inet", "table": "t", "chain": "i", "expr": [{"accept": null}]}}'
    )
    assert decide(rules, PEER, HERE, 29500, "eth0").action is action


def test_chains_in_a_circle_end() -> None:
    text = '{"chain": {"family": "inet", "table": "t", "name": "a"}}, ' + ", ".join(
        f'{{"rule": {{"family": "inet", "table": "t", "chain": "{chain}", '
        '"expr": [{"jump": {"target": "a"}}]}}'
        for chain in ("i", "a", "a")
    )
    decision = decide(nft(text), PEER, HERE, 1, "eth0")
    assert decision.action is Action.UNKNOWN
    assert "too complex" in decision.reason


@pytest.mark.slow
def test_a_very_large_rule_set_is_undecided_with_the_reason() -> None:
    many = "\n".join(f"-A INPUT -p tcp -m tcp --dport {n % 65535 + 1} -j ACCEPT" for n in range(41_233))
    tables = parse_iptables_save(f"*filter\n:INPUT DROP [0:0]\n{many}\nCOMMIT\n", "ip")
    decision = decide(combine(iptables=tables), PEER, HERE, 29500, "eth0")
    assert decision.action is Action.UNKNOWN
    assert "41,233 rules" in decision.reason


@pytest.mark.slow
def test_too_many_boundaries_leave_the_rest_undecided() -> None:
    many = "\n".join(f"-A INPUT -p tcp -m tcp --dport {2 * n + 20_001} -j ACCEPT" for n in range(19_000))
    rules = combine(iptables=parse_iptables_save(f"*filter\n:INPUT DROP [0:0]\n{many}\nCOMMIT\n", "ip"))
    spans = rules.decide_ports(PEER, HERE, 20_000, 60_000, "eth0", EPHEMERAL)
    assert [span.decision.action for span in spans[:2]] == [Action.DROP, Action.ACCEPT]
    assert spans[-1].decision.action is Action.UNKNOWN
    assert spans[-1].last == 60_000


def test_invalid_questions_are_errors_of_the_caller() -> None:
    for source, dest, port in ((PEER, "fd00::1", 1), (PEER, HERE, 0), ("nowhere", HERE, 1)):
        with pytest.raises(ValueError, match=r"."):
            decide(combine(), source, dest, port)
