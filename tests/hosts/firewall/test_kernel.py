"""The evaluator against the kernel: rule sets are loaded into a namespace, and a peer really connects.

If the evaluator does not return UNKNOWN, it must agree with the real connections, for every port
and source, inbound, outbound and over the loopback. Rule sets: the recorded ones of ufw, firewalld and
iptables, hand-written ones for each kind of rule, and random ones from fixed seeds.
"""

from __future__ import annotations

import json
import os
import random
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from doctor.firewall import Action, Decision, Ruleset, combine, opening, parse_iptables_save, parse_nft
from tests.lab.needs import missing, without
from tests.support.cases import from_cases
from tests.support.faults import some_of
from tests.support.firewall import decide
from tests.support.paths import ROOT

SAMPLES = ROOT / "tests" / "samples" / "firewall"
WRITTEN = SAMPLES / "written"
TOOLS = ("ip", "nsenter", "nft", "iptables-nft", "iptables-legacy")
PORTS = (22, 80, 2222, 29500, 29510, 29511, 29512, 29555, 29600, 30080, 60000, 60031)
HOST, HOST6 = "198.18.0.1", "fd00::1"
HOST_MAC, PEER_MAC = "02:00:00:00:00:01", "02:00:00:00:00:02"
EPHEMERAL = (32768, 59999)
PEERS, PEER6 = ("198.18.0.2", "198.18.0.66", "10.1.2.3"), "fd00::2"

WHY_NOT = missing() or next((f"the lab needs the program {tool!r}" for tool in TOOLS if without(tool)), None)
pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))

AGENT = from_cases(__file__, "AGENT", str)


@dataclass
class Side:
    """One namespace and the agent that listens and connects inside it."""

    name: str
    agent: subprocess.Popen[str] | None = None

    def run(self, *command: str, text: str = "") -> str:
        done = subprocess.run(
            ["nsenter", f"--net=/run/netns/{self.name}", *command],
            input=text, capture_output=True, text=True, check=False, timeout=30,
        )  # fmt: skip
        assert done.returncode == 0, (command, done.stderr, text)
        return done.stdout

    def start(self) -> None:
        command = ["nsenter", f"--net=/run/netns/{self.name}", "python3", "-c", AGENT, json.dumps(PORTS)]
        self.agent = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.agent.stdout is not None
        assert self.agent.stdout.readline() == "listening\n"

    def connect(self, wanted: list[Attempt], patience: float = 0.2) -> list[str]:
        assert self.agent is not None
        assert self.agent.stdin is not None
        assert self.agent.stdout is not None
        print(json.dumps([wanted, patience]), file=self.agent.stdin, flush=True)
        results: list[str] = json.loads(self.agent.stdout.readline())
        return results

    def close(self) -> None:
        if self.agent is not None:
            assert self.agent.stdin is not None
            assert self.agent.stdout is not None
            self.agent.kill()
            self.agent.stdin.close()
            self.agent.stdout.close()
            self.agent.wait()
        subprocess.run(["ip", "netns", "del", self.name], check=False, capture_output=True)


@dataclass
class Lab:
    host: Side
    peer: Side

    def load(self, text: str, tool: str) -> None:
        self.host.run(*tool.split(), text=text)

    def clear(self) -> None:
        self.host.run("nft", "flush", "ruleset")
        for family, word in (("ip", "iptables"), ("ip6", "ip6tables")):
            for table in self.host.run("cat", f"/proc/net/{family}_tables_names").split():
                chains = {
                    "filter": "INPUT FORWARD OUTPUT",
                    "raw": "PREROUTING OUTPUT",
                    "nat": "PREROUTING INPUT OUTPUT POSTROUTING",
                }
                every = "PREROUTING INPUT FORWARD OUTPUT POSTROUTING"
                names = chains.get(table, every).split()
                empty = "\n".join([f"*{table}", *(f":{name} ACCEPT [0:0]" for name in names), "COMMIT\n"])
                self.host.run(f"{word}-legacy-restore", text=empty)

    def ruleset(self) -> Ruleset:
        """The rule set that the tools print, read exactly as from a real host."""
        saves = parse_iptables_save(self.host.run("iptables-nft-save"), "ip")
        saves += parse_iptables_save(self.host.run("ip6tables-nft-save"), "ip6")
        saves += parse_iptables_save(self.host.run("iptables-legacy-save"), "ip")
        saves += parse_iptables_save(self.host.run("ip6tables-legacy-save"), "ip6")
        listed = self.host.run("nft", "-j", "list", "ruleset")
        return combine(parse_nft(listed, self.host.run("nft", "list", "chains")), saves)


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    host, peer = Side(f"fwh{os.getpid()}"), Side(f"fwp{os.getpid()}")
    try:
        for side in (host, peer):
            subprocess.run(["ip", "netns", "add", side.name], check=True)
        one = f"eth0 netns {host.name} address {HOST_MAC}"
        other = f"eth0 netns {peer.name} address {PEER_MAC}"
        subprocess.run(f"ip link add {one} type veth peer name {other}".split(), check=True)
        for side, addresses in ((host, (HOST, HOST6)), (peer, (*PEERS, PEER6))):
            side.run("ip", "link", "set", "lo", "up")
            side.run("sh", "-c", "echo 32768 59999 >/proc/sys/net/ipv4/ip_local_port_range")
            side.run("ip", "link", "set", "eth0", "up")
            for address in addresses:
                plain = ["ip", "address", "add", f"{address}/{64 if ':' in address else 24}", "dev", "eth0"]
                side.run(*plain, *(["nodad"] if ":" in address else []))
        host.run("ip", "route", "add", "10.1.2.0/24", "dev", "eth0")
        for address in (*PEERS, PEER6):
            host.run("ip", "neigh", "replace", address, "lladdr", PEER_MAC, "dev", "eth0")
        for address in (HOST, HOST6):
            peer.run("ip", "neigh", "replace", address, "lladdr", HOST_MAC, "dev", "eth0")
        host.start()
        peer.start()
        yield Lab(host, peer)
    finally:
        host.close()
        peer.close()


Attempt = tuple[str, str, int]
INBOUND = [(source, HOST, port) for source in PEERS for port in PORTS] + [
    (PEER6, HOST6, port) for port in PORTS
]
OUTBOUND = [(HOST, PEERS[0], port) for port in PORTS] + [(HOST6, PEER6, port) for port in PORTS]
WITHIN = [(HOST, HOST, port) for port in PORTS]


def compare(lab: Lab) -> list[Action]:
    """Compare every decision with the real connections; every definite decision must be right."""
    rules = lab.ruleset()
    actions: list[Action] = []
    for side, attempts in ((lab.peer, INBOUND), (lab.host, OUTBOUND + WITHIN)):
        ask = partial(decide, rules, incoming=side is lab.peer)
        decisions = {one: ask(*one, "eth0", EPHEMERAL) for one in attempts}
        results = dict(zip(attempts, side.connect(attempts), strict=True))
        late = [
            one for one in attempts if decisions[one].action is Action.ACCEPT and results[one] == "timeout"
        ]
        results |= zip(late, side.connect(late, patience=1.5), strict=True)
        for one in attempts:
            agree(one, results[one], decisions[one])
            agree(one, results[one], ask(*one, None, EPHEMERAL))
        actions += [decision.action for decision in decisions.values()]
    return actions


def agree(attempt: Attempt, result: str, decision: Decision) -> None:
    if decision.action is Action.ACCEPT:
        assert result == "ok", (attempt, decision)
    elif decision.blocked:
        assert result != "ok", (attempt, decision)
    if decision.action is Action.DROP and not decision.reason:
        assert result in ("timeout", "error"), (attempt, result, decision)


RESTORE = from_cases(__file__, "RESTORE", dict[str, str])


def recorded() -> list[str]:
    """Samples by name; if there is a save, nft's JSON shows the same tables and is not loaded."""
    return sorted(
        {path.name.split(".")[0] for path in SAMPLES.iterdir() if path.is_file() and path.suffix != ".md"}
    )


@pytest.mark.parametrize("name", recorded())
def test_recorded_rule_sets(lab: Lab, name: str) -> None:
    lab.clear()
    paths = {path.name.partition(".")[2]: path for path in SAMPLES.glob(f"{name}.*")}
    saves = [ending for ending in paths if ending != "nft.json"]
    for ending in saves or ["nft.json"]:
        lab.load(paths[ending].read_text(), RESTORE[ending])
    actions = compare(lab)
    assert Action.ACCEPT in actions


UNDECIDED = from_cases(__file__, "UNDECIDED", tuple[str, ...])
"""A SYN may ask for ECN, so `tcp flags != syn` is open. The packets after an untracked packet may be tracked.
"""


@pytest.mark.parametrize("path", sorted(WRITTEN.glob("*.nft")), ids=lambda path: path.stem)
def test_written_nft(lab: Lab, path: Path) -> None:
    lab.clear()
    lab.load(path.read_text(), "nft -f -")
    assert (Action.UNKNOWN in compare(lab)) == (path.stem in UNDECIDED)


@pytest.mark.parametrize("backend", ["nft", "legacy"])
@pytest.mark.parametrize("path", sorted(WRITTEN.glob("*.save")), ids=lambda path: path.stem)
def test_written_iptables(lab: Lab, path: Path, backend: str) -> None:
    lab.clear()
    lab.load(path.read_text(), f"iptables-{backend}-restore")
    assert (Action.UNKNOWN in compare(lab)) == (path.stem in UNDECIDED)


def save(rules: list[str], policy: str = "ACCEPT", chains: tuple[str, ...] = ()) -> str:
    head = ["*filter", f":INPUT {policy} [0:0]", ":FORWARD DROP [0:0]", ":OUTPUT ACCEPT [0:0]"]
    return "\n".join([*head, *(f":{chain} - [0:0]" for chain in chains), *rules, "COMMIT\n"])


def test_all_backends_at_once(lab: Lab) -> None:
    lab.clear()
    lab.load(save(["-A INPUT -p tcp --dport 22 -j DROP"]), "iptables-nft-restore")
    lab.load(save(["-A INPUT -p tcp --dport 80 -j DROP"]), "iptables-legacy-restore")
    lab.load(save(["-A INPUT -p tcp --dport 80 -j DROP"]), "ip6tables-legacy-restore")
    hook = "type filter hook input priority 0;"
    lab.load(f"table ip filter2 {{\nchain i {{ {hook} tcp dport 2222 drop; }}\n}}\n", "nft -f -")
    actions = compare(lab)
    assert actions.count(Action.DROP) == 3 * (len(PEERS) + 1) + 1


def some(dice: random.Random, choices: tuple[str, ...], most: int) -> str:
    return " ".join(dice.sample(choices, dice.randint(0, most)))


def random_nft(seed: int) -> str:
    dice = random.Random(seed)
    ports = [str(port) for port in PORTS]

    def port_set() -> str:
        low, high = sorted(dice.sample(PORTS, 2))
        return (
            f"{{ {', '.join(dice.sample(ports, 3))}, {low}-{high} }}"
            if dice.random() < 0.5
            else f"{low}-{high}"
        )

    def rule(depth: int) -> str:
        matches = (
            f"ip saddr {dice.choice(['', '!= '])}{dice.choice([*PEERS, '198.18.0.0/26', '10.0.0.0/8'])}",
            f"tcp dport {dice.choice(['', '!= '])}{port_set()}",
            f"ct state {dice.choice(['new', 'established', 'new,established', '{ new, invalid }'])}",
            f"meta mark & 0x3 {dice.choice(['==', '!='])} {dice.randint(0, 3)}",
            f"iifname {dice.choice(['', '!= '])}{dice.choice(['eth0', 'lo'])}",
            f"ip saddr . tcp dport {{ {dice.choice(PEERS)} . 80, 10.0.0.0/8 . 1-{dice.choice(ports)} }}",
            f"tcp flags & (syn|ack) == {dice.choice(['syn', 'ack'])}",
        )
        if dice.random() < 0.15:
            chosen = dice.sample(ports, 3)
            verdicts = ["accept", "drop", f"jump c{depth + 1}" if depth < 3 else "return"]
            pairs = [f"{port} : {verdict}" for port, verdict in zip(chosen, verdicts, strict=True)]
            return f"tcp dport vmap {{ {', '.join(pairs)} }}"
        ends = [
            "accept",
            "drop",
            "reject",
            "return",
            "counter",
            f"meta mark set meta mark or {dice.randint(1, 3)}",
        ]
        ends += [f"jump c{depth + 1}", f"goto c{depth + 1}"] * 2 if depth < 3 else []
        return f"{some(dice, matches, 3)} {dice.choice(ends)}"

    chains = []
    for n in (3, 2, 1):
        rules = "; ".join(rule(n) for _ in range(dice.randint(1, 4)))
        chains.append(f"chain c{n} {{ {rules}; }}")
    for name, hook, priority in (("p", "prerouting", -150), ("i", "input", 0), ("o", "output", 0)):
        first = [rule(0) for _ in range(dice.randint(0, 4))]
        policy = dice.choice(["accept", "accept", "drop"])
        if policy == "drop" and dice.random() < 0.8:
            first.insert(0, "ct state established accept")
        head = f"type filter hook {hook} priority {priority}; policy {policy};"
        chains.append(f"chain {name} {{ {head} {'; '.join([*first, 'counter'])}; }}")
    return "table inet t {\n" + "\n".join(chains) + "\n}\n"


@pytest.mark.parametrize("seed", some_of(range(16), *range(8)))
def test_random_nft(lab: Lab, seed: int) -> None:
    lab.clear()
    lab.load(random_nft(seed), "nft -f -")
    assert Action.UNKNOWN not in compare(lab)


def random_iptables(seed: int) -> str:
    dice = random.Random(seed)

    def rule(chain: str, depth: int) -> str:
        low, high = sorted(dice.sample(PORTS, 2))
        no = dice.choice(["", "! "])
        matches = [
            f"{no}-s {dice.choice([*PEERS, '198.18.0.0/26', '10.0.0.0/8'])}",
            f"{no}-i {dice.choice(['eth0', 'lo', 'eth+'])}",
            f"-p tcp -m tcp {no}--dport {low}:{high}",
            f"-m conntrack {no}--ctstate {dice.choice(['NEW', 'ESTABLISHED', 'NEW,RELATED'])}",
            f"-m mark {no}--mark {dice.randint(0, 3)}/3",
            f"-p tcp -m multiport {no}--dports {','.join(map(str, dice.sample(PORTS, 4)))}",
        ]
        ends = ["-j ACCEPT", "-j DROP", "-j REJECT", "-j RETURN", ""]
        ends += [f"-j c{depth + 1}", f"-g c{depth + 1}"] * 2 if depth < 3 else []
        if dice.random() < 0.2:
            matches.pop(2)
        else:
            matches.pop()
        return f"-A {chain} {some(dice, tuple(matches), 3)} {dice.choice(ends)}"

    policy = dice.choice(["ACCEPT", "DROP"])
    rules = ["-A INPUT -m conntrack --ctstate ESTABLISHED -j ACCEPT"] if policy == "DROP" else []
    rules += [rule("INPUT", 0) for _ in range(dice.randint(2, 6))]
    rules += [rule(f"c{n}", n) for n in (1, 2, 3) for _ in range(dice.randint(1, 4))]
    marks = "*mangle\n:PREROUTING ACCEPT [0:0]\n" + "".join(
        f"-A PREROUTING -p tcp --dport {port} -j MARK --{dice.choice(['or', 'xor', 'and'])}-mark {n}\n"
        for n, port in enumerate(dice.sample(PORTS, 3), start=1)
    )
    return f"{marks}COMMIT\n" + save(rules, policy, ("c1", "c2", "c3"))


@pytest.mark.parametrize("seed", some_of(range(12), *range(6)))
def test_random_iptables(lab: Lab, seed: int) -> None:
    lab.clear()
    lab.load(random_iptables(seed), f"iptables-{('nft', 'legacy')[seed % 2]}-restore")
    assert Action.UNKNOWN not in compare(lab)


STOPPED_EARLY = from_cases(__file__, "STOPPED_EARLY", dict[str, str])
EARLY_CHAINS = from_cases(__file__, "EARLY_CHAINS", dict[str, str])


def type_remedies(lab: Lab) -> dict[str, int]:
    """Type the commands that open each direction, and connect again; returns how many connections each
    direction stopped.
    """
    opened = {}
    for way, side, attempts in (("in", lab.peer, INBOUND), ("out", lab.host, OUTBOUND)):
        ask = partial(decide, interface="eth0", ephemeral=EPHEMERAL, incoming=side is lab.peer)

        def stops(rules: Ruleset, ask: Any = ask, attempts: list[Attempt] = attempts) -> list[Decision]:
            return [found for one in attempts if (found := ask(rules, *one)).blocked]

        rules = lab.ruleset()
        stopped = [one for one in attempts if ask(rules, *one).blocked]
        for command in opening(rules, (*PEERS, PEER6), stops) if stopped else ():
            lab.host.run(*shlex.split(command.removeprefix("sudo "), comments=True))
        assert not stops(lab.ruleset())
        results = dict(zip(stopped, side.connect(stopped, patience=1.5), strict=True))
        assert {*results.values()} <= {"ok"}, results
        opened[way] = len(stopped)
    return opened


@pytest.mark.parametrize(("name", "backend"), [("raw", "legacy"), ("mangle, and then the policy", "nft")])
def test_iptables_is_opened_in_the_table_that_drops(lab: Lab, name: str, backend: str) -> None:
    lab.clear()
    lab.load(STOPPED_EARLY[name], f"iptables-{backend}-restore")
    assert type_remedies(lab)["in"]


@pytest.mark.parametrize("name", EARLY_CHAINS)
def test_nft_is_opened_in_the_chain_that_drops(lab: Lab, name: str) -> None:
    lab.clear()
    lab.load(EARLY_CHAINS[name], "nft -f -")
    assert type_remedies(lab)["in"]


@pytest.mark.parametrize(
    "path", some_of(sorted(WRITTEN.glob("*.nft")), WRITTEN / "two_chains.nft"), ids=lambda path: path.stem
)
def test_every_written_rule_set_is_opened(lab: Lab, path: Path) -> None:
    lab.clear()
    lab.load(path.read_text(), "nft -f -")
    type_remedies(lab)
