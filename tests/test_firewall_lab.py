"""The evaluator against the kernel: rule sets are loaded into a host made of namespaces, a peer really connects.

Wherever the evaluator does not say UNKNOWN it has to agree with what the connections do, for every port and
source, inbound and outbound. Rule sets: the recorded ones of ufw, firewalld and iptables, hand-written ones for
each kind of rule, and random ones from fixed seeds.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from doctor.firewall import Action, Decision, Ruleset, combine, parse_iptables_save, parse_nft

SAMPLES = Path(__file__).parent / "samples" / "firewall"
TOOLS = ("ip", "nsenter", "nft", "iptables-nft", "iptables-legacy")
PORTS = (22, 80, 2222, 29500, 29510, 29511, 29512, 29555, 29600, 30080, 60000, 60031)
HOST, HOST6 = "198.18.0.1", "fd00::1"
EPHEMERAL = (32768, 59999)
PEERS, PEER6 = ("198.18.0.2", "198.18.0.66", "10.1.2.3"), "fd00::2"

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(
        not hasattr(os, "geteuid") or os.geteuid() != 0 or not all(map(shutil.which, TOOLS)),
        reason="needs root, ip, nft and iptables",
    ),
]

AGENT = r"""
import json, selectors, socket, sys, threading, time
def serve(ports):
    chosen = selectors.DefaultSelector()
    for port in ports:
        listener = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=64)
        listener.setblocking(False)
        chosen.register(listener, selectors.EVENT_READ)
    print("listening", flush=True)
    while True:
        for key, _ in chosen.select():
            try:
                one, _ = key.fileobj.accept()
                one.send(b"x")
                one.close()
            except OSError:
                pass
def connect(wanted, patience):
    chosen, results = selectors.DefaultSelector(), ["timeout"] * len(wanted)
    for at, (source, dest, port) in enumerate(wanted):
        sock = socket.socket(socket.AF_INET6 if ":" in dest else socket.AF_INET)
        sock.setblocking(False)
        sock.bind((source, 0))
        error = sock.connect_ex((dest, port))
        if error not in (0, 115):
            results[at] = "error"
            sock.close()
            continue
        chosen.register(sock, selectors.EVENT_READ, at)
    end = time.monotonic() + patience
    while chosen.get_map() and time.monotonic() < end:
        for key, _ in chosen.select(max(0, end - time.monotonic())):
            try:
                results[key.data] = "ok" if key.fileobj.recv(1) == b"x" else "closed"
            except OSError as error:
                results[key.data] = "refused"
            chosen.unregister(key.fileobj)
            key.fileobj.close()
    for key in list(chosen.get_map().values()):
        key.fileobj.close()
    return results
threading.Thread(target=serve, args=(json.loads(sys.argv[1]),), daemon=True).start()
for line in sys.stdin:
    print(json.dumps(connect(*json.loads(line))), flush=True)
"""


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
                chains = {"filter": "INPUT FORWARD OUTPUT", "nat": "PREROUTING INPUT OUTPUT POSTROUTING"}
                every = "PREROUTING INPUT FORWARD OUTPUT POSTROUTING"
                names = chains.get(table, "PREROUTING OUTPUT" if table == "raw" else every).split()
                empty = "\n".join([f"*{table}", *(f":{name} ACCEPT [0:0]" for name in names), "COMMIT\n"])
                self.host.run(f"{word}-legacy-restore", text=empty)

    def ruleset(self) -> Ruleset:
        """What the tools print, read exactly as it would be read from a real host."""
        saves = parse_iptables_save(self.host.run("iptables-nft-save"), "ip")
        saves += parse_iptables_save(self.host.run("ip6tables-nft-save"), "ip6")
        saves += parse_iptables_save(self.host.run("iptables-legacy-save"), "ip")
        saves += parse_iptables_save(self.host.run("ip6tables-legacy-save"), "ip6")
        return combine(parse_nft(self.host.run("nft", "-j", "list", "ruleset")), saves)


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    host, peer = Side(f"fwh{os.getpid()}"), Side(f"fwp{os.getpid()}")
    try:
        for side, mac in ((host, "02:00:00:00:00:01"), (peer, "02:00:00:00:00:02")):
            subprocess.run(["ip", "netns", "add", side.name], check=True)
            if side is host:
                continue
            subprocess.run(
                ["ip", "link", "add", "eth0", "netns", host.name, "address", "02:00:00:00:00:01", "type", "veth",
                 "peer", "name", "eth0", "netns", peer.name, "address", mac], check=True,
            )  # fmt: skip
        for side, addresses in ((host, (HOST, HOST6)), (peer, (*PEERS, PEER6))):
            side.run("ip", "link", "set", "lo", "up")
            side.run("sh", "-c", "echo 32768 59999 >/proc/sys/net/ipv4/ip_local_port_range")
            side.run("ip", "link", "set", "eth0", "up")
            for address in addresses:
                plain = ["ip", "address", "add", f"{address}/{64 if ':' in address else 24}", "dev", "eth0"]
                side.run(*plain, *(["nodad"] if ":" in address else []))
        host.run("ip", "route", "add", "10.1.2.0/24", "dev", "eth0")
        for address in (*PEERS, PEER6):
            host.run("ip", "neigh", "replace", address, "lladdr", "02:00:00:00:00:02", "dev", "eth0")
        for address in (HOST, HOST6):
            peer.run("ip", "neigh", "replace", address, "lladdr", "02:00:00:00:00:01", "dev", "eth0")
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
    """Every decision beside what really happened; all that is decided has to be so."""
    rules = lab.ruleset()
    actions: list[Action] = []
    for side, attempts in ((lab.peer, INBOUND), (lab.host, OUTBOUND + WITHIN)):
        decide = rules.decide_in if side is lab.peer else rules.decide_out
        decisions = {one: decide(*one, "eth0", EPHEMERAL) for one in attempts}
        results = dict(zip(attempts, side.connect(attempts), strict=True))
        late = [
            one for one in attempts if decisions[one].action is Action.ACCEPT and results[one] == "timeout"
        ]
        results |= zip(late, side.connect(late, patience=1.5), strict=True)
        for one in attempts:
            agree(one, results[one], decisions[one])
            agree(one, results[one], decide(*one, None, EPHEMERAL))
        actions += [decision.action for decision in decisions.values()]
    return actions


def agree(attempt: Attempt, result: str, decision: Decision) -> None:
    if decision.action is Action.ACCEPT:
        assert result == "ok", (attempt, decision)
    elif decision.blocked:
        assert result != "ok", (attempt, decision)
    if decision.action is Action.DROP and not decision.reason:
        assert result in ("timeout", "error"), (attempt, result, decision)


RESTORE = {
    "nft.json": "nft -j -f -",
    "save4": "iptables-nft-restore",
    "save6": "ip6tables-nft-restore",
    "legacy4": "iptables-legacy-restore",
}


def recorded() -> list[str]:
    """Samples by name; where a save is there, nft's JSON shows the same tables and is not loaded."""
    return sorted({path.name.split(".")[0] for path in SAMPLES.iterdir() if path.suffix != ".md"})


@pytest.mark.parametrize("name", recorded())
def test_recorded_rule_sets(lab: Lab, name: str) -> None:
    lab.clear()
    paths = {path.name.partition(".")[2]: path for path in SAMPLES.glob(f"{name}.*")}
    saves = [ending for ending in paths if ending != "nft.json"]
    for ending in saves or ["nft.json"]:
        lab.load(paths[ending].read_text(), RESTORE[ending])
    actions = compare(lab)
    assert Action.ACCEPT in actions


BASE = "type filter hook input priority 0; policy"
NFT = {
    "nothing": "",
    "policy drop": f"chain i {{ {BASE} drop; }}",
    "state, then ports": f"chain i {{ {BASE} drop; ct state established,related accept; tcp dport {{ 22, 29500-29511 }} accept; }}",
    "state by map": f"chain i {{ {BASE} drop; ct state vmap {{ established : accept, invalid : drop }}; ip saddr 198.18.0.0/26 accept; }}",
    "no state for answers": "chain o { type filter hook output priority 0; policy drop; tcp dport 22 accept; }",
    "answers only": "chain o { type filter hook output priority 0; policy drop; ct state established accept; tcp dport 1-1000 accept; }",
    "port map": f"chain a {{ ip saddr 10.0.0.0/8 drop; return; }}; chain i {{ {BASE} accept; tcp dport vmap {{ 80 : drop, 29500-29555 : jump a, 60000 : goto a }}; }}",
    "named sets": f"set s {{ type ipv4_addr; flags interval; elements = {{ 198.18.0.64/26, 10.0.0.0-10.1.2.2 }}; }}; set c {{ type ipv4_addr . inet_service; flags interval; elements = {{ 10.0.0.0/8 . 22-2222, 198.18.0.2 . 80 }}; }}; chain i {{ {BASE} accept; ip saddr @s drop; ip saddr . tcp dport @c reject; }}",
    "not": f"chain i {{ {BASE} accept; tcp dport != {{ 22, 29500-30000 }} drop; ip saddr != 198.18.0.0/24 reject with tcp reset; }}",
    "interfaces": f'chain i {{ {BASE} drop; iifname "et*" tcp dport 22 accept; iif "lo" accept; iifname {{ "eth0", "eth1" }} ct state established accept; oifname "eth0" accept; iifname . tcp dport {{ "eth0" . 80 }} accept; }}',
    "flags": f"chain i {{ {BASE} drop; tcp flags & (fin|syn|rst|ack) == syn tcp dport 22-80 accept; tcp flags != syn accept; }}",
    "flags in": f"chain i {{ {BASE} accept; tcp flags syn tcp dport 22 drop; tcp flags ! syn tcp dport 80 drop; tcp flags ack tcp dport 2222 drop; }}",
    "marks": f"chain p {{ type filter hook prerouting priority -150; tcp dport 29500-29512 meta mark set 0x12; ip saddr 10.0.0.0/8 meta mark set meta mark or 0x100; }}; chain i {{ {BASE} accept; meta mark & 0xff == 0x12 drop; meta mark 0x100 reject; }}",
    "connection marks": f"chain p {{ type filter hook prerouting priority -150; ct state new tcp dport 22 ct mark set 7; }}; chain i {{ {BASE} accept; ct state established ct mark 7 drop; }}",
    "untracked": f"chain p {{ type filter hook prerouting priority -300; tcp dport 22 notrack; }}; chain i {{ {BASE} drop; ct state new,established accept; ct state untracked ip saddr 198.18.0.2 accept; }}",
    "invalid before tracking": "chain p { type filter hook prerouting priority -300; ct state invalid tcp dport 22-80 drop; }",
    "two chains": f"chain early {{ type filter hook input priority -10; policy accept; tcp dport 22 accept; tcp dport 80 drop; }}; chain i {{ {BASE} drop; tcp dport {{ 80, 29500 }} accept; }}",
    "prerouting": "chain p { type filter hook prerouting priority -150; fib daddr type local tcp dport 22 drop; fib saddr . iif oif missing drop; }",
    "protocols": f"chain i {{ {BASE} drop; meta l4proto {{ tcp, udp }} th dport 22 accept; ip protocol tcp tcp dport 80 accept; udp dport 2222 accept; meta nfproto ipv6 tcp dport 29500 accept; }}",
    "limit": f"chain i {{ {BASE} drop; tcp dport 22 limit rate 1/minute accept; tcp dport 80 limit rate over 10000/second drop; tcp dport 80 accept; }}",
    "catch-all": f"chain i {{ {BASE} drop; ip saddr vmap {{ 198.18.0.0/24 : accept, * : drop }}; ip6 saddr fd00::/16 accept; }}",
    "dynamic": f"set d {{ type ipv4_addr; flags dynamic,timeout; timeout 1m; }}; chain i {{ {BASE} accept; tcp dport 22 ip saddr @d drop; add @d {{ ip saddr }}; }}",
    "comparisons": f"chain i {{ {BASE} drop; ct state != new accept; tcp dport >= 30080 accept; tcp dport < 80 accept; tcp sport 1-1023 drop; }}",
    "loose ends": f"chain a {{ tcp dport 22 return; goto b; }}; chain b {{ tcp dport 80 accept; }}; chain i {{ {BASE} drop; jump a; tcp dport {{ 22, 29500 }} accept; ct state established accept; }}",
    "ingress": "chain n { type filter hook ingress device eth0 priority 0; policy accept; tcp dport 22 drop; }",
    "packet type": f"chain i {{ {BASE} drop; meta pkttype host tcp dport 22-29500 accept; ct state established accept; }}",
}  # fmt: skip


UNDECIDED = ("limit", "dynamic", "ingress", "untracked", "flags")
"""A SYN may ask for ECN, so that `tcp flags != syn` is open; what follows an untracked packet may be tracked."""


@pytest.mark.parametrize("name", NFT)
def test_written_nft(lab: Lab, name: str) -> None:
    lab.clear()
    body = NFT[name].replace("}; chain", "}\n chain").replace("}; set", "}\n set")
    lab.load(f"table inet t {{\n{body}\n}}\n", "nft -f -")
    actions = compare(lab)
    assert (Action.UNKNOWN in actions) == (name in UNDECIDED)


def save(rules: list[str], policy: str = "ACCEPT", chains: tuple[str, ...] = ()) -> str:
    head = ["*filter", f":INPUT {policy} [0:0]", ":FORWARD DROP [0:0]", ":OUTPUT ACCEPT [0:0]"]
    return "\n".join([*head, *(f":{chain} - [0:0]" for chain in chains), *rules, "COMMIT\n"])


IPTABLES = {
    "docker": save([], chains=("DOCKER",)),
    "state": save(
        ["-A INPUT -i lo -j ACCEPT", "-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT",
         "-A INPUT -p tcp -m multiport --dports 22,29500:29511 -j ACCEPT",
         "-A INPUT -j REJECT --reject-with icmp-host-prohibited"]),
    "chains": save(
        ["-A INPUT -p tcp -j a", "-A INPUT -p tcp --dport 80 -j DROP", "-A a -s 10.0.0.0/8 -g b",
         "-A a -p tcp --dport 22 -j RETURN", "-A a -m iprange --src-range 198.18.0.60-198.18.0.70 -j DROP",
         "-A b ! -i eth+ -j ACCEPT", "-A b -p tcp ! --dport 29500:60000 -j REJECT --reject-with tcp-reset"],
        chains=("a", "b")),
    "marks": "*mangle\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -p tcp --dport 29500:29512 -j MARK --set-xmark 0x10/0xff\n"
             "-A PREROUTING -s 10.0.0.0/8 -j MARK --or-mark 0x100\nCOMMIT\n" + save(
        ["-A INPUT -m mark --mark 0x110/0x1ff -j DROP", '-A INPUT -m mark ! --mark 0x0 -m comment --comment "it\'s \\"x\\"" -j REJECT']),
    "flags": save(
        ["-A INPUT -p tcp --syn --dport 22:80 -j ACCEPT", "-A INPUT -p tcp ! --syn -j ACCEPT",
         "-A INPUT -p tcp --tcp-flags SYN,ACK SYN -m addrtype --dst-type LOCAL -s 198.18.0.2,10.1.2.3 -j ACCEPT"], "DROP"),
    "untracked": "*raw\n:PREROUTING ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n-A PREROUTING -p tcp --dport 22 -j CT --notrack\n"
                 "-A OUTPUT -p tcp --sport 22 -j CT --notrack\nCOMMIT\n" + save(
        ["-A INPUT -m conntrack --ctstate UNTRACKED -j DROP", "-A INPUT -m state --state NEW -s 10.0.0.0/8 -j DROP"]),
    "doubts": save(
        ["-A INPUT -p tcp --dport 22 -m recent --name x --rcheck -j DROP", "-A INPUT -p tcp --dport 80 -m limit --limit 1/hour -j ACCEPT",
         "-A INPUT -p tcp --dport 80 -j ACCEPT", "-A INPUT -p udp -j DROP", "-A INPUT -p icmp -j DROP"]),
}  # fmt: skip


@pytest.mark.parametrize("backend", ["nft", "legacy"])
@pytest.mark.parametrize("name", IPTABLES)
def test_written_iptables(lab: Lab, name: str, backend: str) -> None:
    lab.clear()
    lab.load(IPTABLES[name], f"iptables-{backend}-restore")
    actions = compare(lab)
    assert (Action.UNKNOWN in actions) == (name == "doubts")


def test_all_backends_at_once(lab: Lab) -> None:
    lab.clear()
    lab.load(save(["-A INPUT -p tcp --dport 22 -j DROP"]), "iptables-nft-restore")
    lab.load(save(["-A INPUT -p tcp --dport 80 -j DROP"]), "iptables-legacy-restore")
    lab.load(save(["-A INPUT -p tcp --dport 80 -j DROP"]), "ip6tables-legacy-restore")
    lab.load(f"table ip filter2 {{\nchain i {{ {BASE} accept; tcp dport 2222 drop; }}\n}}\n", "nft -f -")
    actions = compare(lab)
    assert actions.count(Action.DROP) == 3 * 3 + 1


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
            f"ip saddr . tcp dport {{ {dice.choice(PEERS)} . {dice.choice(ports)}, 10.0.0.0/8 . 1-{dice.choice(ports)} }}",
            f"tcp flags & (syn|ack) == {dice.choice(['syn', 'ack'])}",
        )
        if dice.random() < 0.15:
            chosen = dice.sample(ports, 3)
            verdicts = ["accept", "drop", f"jump c{depth + 1}" if depth < 3 else "return"]
            return f"tcp dport vmap {{ {', '.join(f'{p} : {v}' for p, v in zip(chosen, verdicts, strict=True))} }}"
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

    chains = [f"chain c{n} {{ {'; '.join(rule(n) for _ in range(dice.randint(1, 4)))}; }}" for n in (3, 2, 1)]
    for name, hook, priority in (("p", "prerouting", -150), ("i", "input", 0), ("o", "output", 0)):
        rules = [rule(0) for _ in range(dice.randint(0, 4))]
        policy = dice.choice(["accept", "accept", "drop"])
        if policy == "drop" and dice.random() < 0.8:
            rules.insert(0, "ct state established accept")
        head = f"type filter hook {hook} priority {priority}; policy {policy};"
        chains.append(f"chain {name} {{ {head} {'; '.join([*rules, 'counter'])}; }}")
    return "table inet t {\n" + "\n".join(chains) + "\n}\n"


@pytest.mark.parametrize("seed", range(16))
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
        f"-A PREROUTING -p tcp --dport {port} -j MARK --{dice.choice(['or-mark', 'set-xmark', 'xor-mark'])} {n}\n"
        for n, port in enumerate(dice.sample(PORTS, 3), start=1)
    )
    return f"{marks}COMMIT\n" + save(rules, policy, ("c1", "c2", "c3"))


@pytest.mark.parametrize("seed", range(12))
def test_random_iptables(lab: Lab, seed: int) -> None:
    lab.clear()
    lab.load(random_iptables(seed), f"iptables-{('nft', 'legacy')[seed % 2]}-restore")
    assert Action.UNKNOWN not in compare(lab)
