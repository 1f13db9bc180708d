"""Rules whose outcome depends on the traffic: one connection that works does not decide them."""

import json
from dataclasses import dataclass, field

from doctor.firewall import Ruleset, combine, parse_iptables_save, parse_nft
from doctor.firewall.decision import Action
from tests.support.cases import cases
from tests.support.firewall import decide

PEER, HERE = "198.18.0.3", "198.18.0.2"


def iptables(*rules: str, policy: str = "ACCEPT") -> Ruleset:
    text = "\n".join(["*filter", f":INPUT {policy} [0:0]", *(f"-A INPUT {rule}" for rule in rules), "COMMIT"])
    return combine(iptables=parse_iptables_save(f"{text}\n", "ip"))


def nft(*statements: object) -> Ruleset:
    place = {"family": "inet", "table": "t"}
    chain = {**place, "name": "i", "type": "filter", "hook": "input", "prio": 0, "policy": "accept"}
    objects = [{"table": {"family": "inet", "name": "t"}}, {"chain": chain}]
    objects += [{"rule": {**place, "chain": "i", "expr": [*statements]}}]
    return combine(parse_nft(json.dumps({"nftables": objects})))


@dataclass(frozen=True)
class Rules:
    """The rules of one chain, as one of the two tools writes them."""

    iptables: list[str] = field(default_factory=list)
    policy: str = "ACCEPT"
    nft: list[object] = field(default_factory=list)

    def read(self) -> Ruleset:
        return nft(*self.nft) if self.nft else iptables(*self.iptables, policy=self.policy)


@cases
def test_one_connection_does_not_decide_it(rules: Rules) -> None:
    decision = decide(rules.read(), PEER, HERE, 40000, "eth0")
    assert (decision.action, decision.varies) == (Action.UNKNOWN, True), decision


@cases
def test_a_connection_that_works_decides_it(rules: Rules) -> None:
    decided_by_the_connection(rules.read())


def decided_by_the_connection(rules: Ruleset) -> None:
    decision = decide(rules, PEER, HERE, 40000, "eth0")
    assert (decision.action, decision.varies) == (Action.UNKNOWN, False), decision
    assert "limit" not in decision.reason


def test_a_limit_in_front_that_decides_nothing() -> None:
    limit = iptables("-p tcp -m limit --limit 9/sec -j ACCEPT")
    drop = "*mangle\n:INPUT ACCEPT [0:0]\n-A INPUT -m set --match-set b src -j DROP\nCOMMIT\n"
    decided_by_the_connection(combine(iptables=(*limit.tables, *parse_iptables_save(drop, "ip"))))


@cases
def test_a_limit_that_cannot_stop_the_job_is_no_doubt(rules: Rules) -> None:
    assert decide(rules.read(), PEER, HERE, 40000, "eth0").action is Action.ACCEPT
