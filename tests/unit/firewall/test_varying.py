"""Rules whose outcome depends on the traffic: one connection that works does not decide them."""

import json

import pytest

from doctor.firewall import Ruleset, combine, parse_iptables_save, parse_nft
from doctor.firewall.decision import Action
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


OVER = {"limit": {"rate": 100, "per": "second", "inv": True}}
MANY = {"ct count": {"val": 4, "inv": True}}
LONG = {"match": {"op": ">", "left": {"meta": {"key": "length"}}, "right": 1400}}
DROP = {"drop": None}
SYN = "-p tcp -m tcp --tcp-flags FIN,SYN,RST,ACK SYN"
VARYING = {
    "connlimit": iptables(f"{SYN} -m connlimit --connlimit-above 4 --connlimit-mask 32 -j REJECT"),
    "limit": iptables(f"{SYN} -m limit --limit 10/sec -j ACCEPT", policy="DROP"),
    "length": iptables("-p tcp -m length --length 1400:65535 -j DROP"),
    "recent": iptables("-m recent --update --seconds 60 --hitcount 9 --name x --rsource -j DROP"),
    "statistic": iptables("-m statistic --mode random --probability 0.01 -j DROP"),
    "an ipset, then connlimit": iptables("-m set --match-set x src -m connlimit --connlimit-above 4 -j DROP"),
    "nft: a rate": nft(OVER, DROP),
    "nft: connections": nft(MANY, {"reject": None}),
    "nft: long packets": nft(LONG, DROP),
}
FIXED = {
    "an ipset": iptables("-m set --match-set black src -j DROP"),
    "an ipset after a log": iptables("-m limit --limit 5/min -j LOG", "-m set --match-set black src -j DROP"),
    "an ipset after a limit that decides nothing": combine(
        iptables=(
            *iptables(f"{SYN} -m limit --limit 9/sec -j ACCEPT").tables,
            *parse_iptables_save(
                "*mangle\n:INPUT ACCEPT [0:0]\n-A INPUT -m set --match-set b src -j DROP\nCOMMIT\n", "ip"
            ),
        )
    ),
    "the user": iptables("-m owner --uid-owner 0 -j DROP"),
}
PASSING = {
    "a log": iptables("-m limit --limit 5/min -j LOG --log-prefix x"),
    "the SSH port": iptables(
        "-p tcp -m limit --limit 3/min -m tcp --dport 22 -j ACCEPT", "-p tcp -m tcp --dport 22 -j DROP"
    ),
    "what is accepted anyway": iptables(f"{SYN} -m limit --limit 10/sec -j ACCEPT"),
    "the cluster in front": iptables(
        "-s 198.18.0.0/16 -p tcp -j ACCEPT", f"{SYN} -m connlimit --connlimit-above 4 -j REJECT"
    ),
    "nft: a log": nft(OVER, {"log": None}),
}


@pytest.mark.parametrize("name", VARYING)
def test_one_connection_does_not_decide_it(name: str) -> None:
    decision = decide(VARYING[name], PEER, HERE, 40000, "eth0")
    assert (decision.action, decision.varies) == (Action.UNKNOWN, True), decision


@pytest.mark.parametrize("name", FIXED)
def test_a_connection_that_works_decides_it(name: str) -> None:
    decision = decide(FIXED[name], PEER, HERE, 40000, "eth0")
    assert (decision.action, decision.varies) == (Action.UNKNOWN, False), decision
    assert "limit" not in decision.reason


@pytest.mark.parametrize("name", PASSING)
def test_a_limit_that_cannot_stop_the_job_is_no_doubt(name: str) -> None:
    assert decide(PASSING[name], PEER, HERE, 40000, "eth0").action is Action.ACCEPT
