"""The suggested commands open what is blocked, where it is blocked, and by the tool that owns the rules."""

import json

import pytest

from doctor.firewall import Decision, Ruleset, combine, opening, parse_iptables_save, parse_nft
from doctor.firewall.doors import LOOK
from tests.support.firewall import decide
from tests.support.paths import ROOT

SAMPLES = ROOT / "tests" / "samples" / "firewall"
PEERS = ("198.18.0.2/31", "fd00::2")
SAVED = "    # until the next boot; for good: the file of iptables-save"
KEPT = "    # until the next boot; for good: nftables.conf"
DROP = "PREROUTING -p tcp -m tcp --dport 29500 -j DROP"


def sample(name: str) -> Ruleset:
    paths = {path.name.partition(".")[2]: path.read_text() for path in SAMPLES.glob(f"{name}.*")}
    saved = (
        parse_iptables_save(text, "ip6" if kind.endswith("6") else "ip", "iptables-nft")
        for kind, text in paths.items()
        if kind.startswith("save")
    )
    return combine(parse_nft(paths["nft.json"]), [table for tables in saved for table in tables])


def saved(*tables: tuple[str, str], tool: str = "iptables-nft") -> Ruleset:
    text = "".join(f"*{table}\n{rules}\nCOMMIT\n" for table, rules in tables)
    return combine(iptables=parse_iptables_save(text, "ip", tool))


def stops(rules: Ruleset) -> list[Decision]:
    found = (decide(rules, "198.18.0.3", "198.18.0.9", port, "eth0") for port in (29500, 40000))
    return [decision for decision in found if decision.blocked]


RAW = ("raw", f":PREROUTING ACCEPT [0:0]\n-A {DROP}")
POLICY = ("filter", ":INPUT DROP [0:0]")
OPENED = {
    "raw": (
        saved(RAW),
        ("sudo iptables -t raw -I PREROUTING -p tcp -s 198.18.0.2/31 -j ACCEPT" + SAVED,),
    ),
    "raw, and then the policy": (
        saved(RAW, POLICY),
        (
            "sudo iptables -t raw -I PREROUTING -p tcp -s 198.18.0.2/31 -j ACCEPT" + SAVED,
            "sudo iptables -I INPUT -p tcp -s 198.18.0.2/31 -j ACCEPT" + SAVED,
        ),
    ),
    "legacy mangle, in a chain of its own": (
        saved(
            (
                "mangle",
                ":PREROUTING ACCEPT [0:0]\n:own - [0:0]\n-A PREROUTING -j own\n"
                f"-A {DROP.replace('PREROUTING', 'own')}",
            ),
            tool="iptables-legacy",
        ),
        (
            "sudo iptables-legacy -t mangle -I PREROUTING -p tcp -s 198.18.0.2/31 -j ACCEPT"
            "    # plain iptables on systems without it",
        ),
    ),
    "ufw": (sample("ufw_port_range"), ("sudo ufw prepend allow from 198.18.0.2/31",)),
    "firewalld": (
        sample("firewalld_default"),
        tuple(
            f"sudo firewall-cmd {how}--zone=trusted --change-source={peer}"
            for peer in PEERS
            for how in ("--permanent ", "")
        ),
    ),
}


@pytest.mark.parametrize("name", OPENED)
def test_the_remedy_goes_where_it_is_stopped(name: str) -> None:
    rules, typed = OPENED[name]
    assert stops(rules), "it would prove nothing"
    assert opening(rules, PEERS, stops) == typed


def early(table: str) -> Ruleset:
    chain = {"family": "inet", "table": table, "name": "in", "type": "filter", "hook": "prerouting"}
    made = [
        {"table": {"family": "inet", "name": table}},
        {"chain": {**chain, "prio": -300, "policy": "drop"}},
    ]
    return combine(parse_nft(json.dumps({"nftables": made})))


def test_a_chain_before_the_others_is_opened_by_its_name() -> None:
    assert opening(early("first"), PEERS, stops) == (
        "sudo nft insert rule inet first in ip saddr 198.18.0.2/31 accept" + KEPT,
        "sudo nft insert rule inet first in ip6 saddr fd00::2 accept" + KEPT,
    )


def test_a_name_that_says_more_to_nft_is_not_typed() -> None:
    assert opening(early("first; flush ruleset;"), PEERS, stops) == LOOK


def test_rules_that_their_owner_has_no_word_for_are_opened_until_it_loads_them_again() -> None:
    """As with rules that somebody wrote into ufw's before.rules."""
    chains = ":INPUT ACCEPT [0:0]\n:ufw-before-input - [0:0]\n:ufw-user-input - [0:0]\n"
    jumps = "-A INPUT -j ufw-before-input\n-A INPUT -j ufw-user-input\n"
    drop = f"-A {DROP.replace('PREROUTING', 'ufw-before-input')}"
    assert opening(saved(("filter", chains + jumps + drop)), PEERS, stops) == (
        "sudo iptables -I INPUT -p tcp -s 198.18.0.2/31 -j ACCEPT    # until its rules are loaded again",
    )


def test_what_no_rule_in_front_can_open_is_only_shown() -> None:
    assert opening(saved(POLICY), ["203.0.113.7"], stops) == LOOK
    assert opening(saved(POLICY), PEERS, lambda _: [Decision(stops(saved(POLICY))[0].action)]) == LOOK
