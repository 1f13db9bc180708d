"""Which gateways lead to a host, what may not be combined, and what a gateway says before a host speaks."""

import socket
from collections.abc import Sequence
from pathlib import Path

import pytest

from doctor.errors import UsageError
from doctor.exam.choose_transport import choose_transport
from doctor.exam.request import WayFlags
from doctor.model import Host, UnreachedKind
from doctor.targets.inventory import COMMAND_LINE, Targets
from doctor.transport.errors import CannotReach, Destination
from doctor.transport.gateways import MOST_BEFORE, _Through, read_gateways
from doctor.transport.way import Way, read_back

ME = socket.gethostname().partition(".")[0]
HOSTS = tuple(Host(name, name) for name in ("node1", "node2", "node3"))


def names(text: str, hosts: Sequence[Host] = HOSTS) -> dict[str, list[str]]:
    return {host: [each.name for each in found] for host, found in read_gateways(text, hosts).items()}


def test_hosts_are_dealt_out_in_turn_and_each_has_all_gateways() -> None:
    assert names("gw[1-2]") == {"node1": ["gw1", "gw2"], "node2": ["gw2", "gw1"], "node3": ["gw1", "gw2"]}
    (first, _) = read_gateways("admin@gw1,gw2", HOSTS)["node1"]
    assert (first.name, first.user) == ("gw1", "admin")


def test_a_topology_says_which_gateways_lead_to_a_host(tmp_path: Path) -> None:
    file = tmp_path / "topology.conf"
    file.write_text(f"[routes]\n{ME}: gw[1-3]\ngw[1-2]: node[1-2]\ngw3: node3\n")
    assert names(str(file)) == {"node1": ["gw1", "gw2"], "node2": ["gw2", "gw1"], "node3": ["gw3"]}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("gw1,node[2-3]", "node[2-3] is a gateway and one of the hosts"),
        ("", "names no host"),
        ("gw[1-", "not a node set"),
        ("./nowhere", "there is no file"),
        ("[routes]\nelsewhere: gw1\ngw1: node1\n", "not a valid root node"),
        ("[routes]\nME: gw1\ngw1: node[1-2]\n", "no route leads from this machine to node3"),
        ("[routes]\nME: gw1\ngw1: gw2\ngw2: node[1-3]\n", "a gateway behind a gateway"),
        ("[routes]\nME: node1\nnode1: node[2-3]\n", "no route leads from this machine to node1"),
        ("nonsense", "Invalid configuration file"),
    ],
)
def test_what_cannot_be_used(text: str, says: str, tmp_path: Path) -> None:
    if "\n" in text or text == "nonsense":
        file = tmp_path / "topology.conf"
        file.write_text(text.replace("ME", ME))
        text = str(file)
    with pytest.raises(UsageError) as refused:
        read_gateways(text, HOSTS)
    assert says in str(refused.value.message)
    assert "\n" not in refused.value.message


@pytest.mark.parametrize(
    ("way", "targets"),
    [
        (WayFlags(via="gw1", jump="gate"), Targets(HOSTS, COMMAND_LINE)),
        (WayFlags(via="gw1", transport="openssh"), Targets(HOSTS, COMMAND_LINE)),
        (WayFlags(via="gw1", transport="srun", allocate=True), Targets(HOSTS, COMMAND_LINE)),
        (WayFlags(via="gw1"), Targets(HOSTS, "local", local=True)),
        (WayFlags(via="gw1"), Targets((Host("a", "a", jump="gate"),), COMMAND_LINE)),
        (WayFlags(via="gw1"), Targets((Host("a", "a", enter_from="controller"),), COMMAND_LINE)),
    ],
)
def test_no_other_way_beside_it(way: WayFlags, targets: Targets) -> None:
    with pytest.raises(UsageError, match="--via cannot be combined with"):
        choose_transport(way, targets, targets.hosts)


def test_suggested_commands_carry_it() -> None:
    way = Way(reached=(("--via", "root@gw1,gw2"),))
    assert read_back(way) == way
    assert way.typed("check", ["node1"]) == "doctor check node1 --via root@gw1,gw2"
    assert way.login("node1", ["ps", "-p", "1"]) == "ssh -l root gw1 ssh node1 ps -p 1"
    assert read_back(Way(reached=(("--via", "gw1;touch x"),))).reached == ()


class Said:
    """A program on a gateway that has said these pieces, and has ended with this code."""

    def __init__(self, *pieces: tuple[bytes, bytes], code: int | None = 255) -> None:
        self.pieces, self.code = [*pieces], code

    def take(self) -> tuple[bytes, bytes]:
        return self.pieces.pop(0) if self.pieces else (b"", b"")

    def finished(self) -> bool:
        return not self.pieces

    def broken(self) -> bool:
        return self.code is None

    def status(self, seconds: float) -> int | None:
        del seconds
        return self.code

    def __getattr__(self, name: str) -> object:
        return lambda *_: None


def through(said: Said) -> _Through:
    return _Through(said, "doctor-mark", Destination("node1", "node1", 22, "", ("gw1", "ssh")), "gw1")  # type: ignore[arg-type]


def why(*pieces: tuple[bytes, bytes], code: int | None = 255) -> CannotReach:
    program = through(Said(*pieces, code=code))
    try:
        while not program.finished():
            program.take()
    except CannotReach as refused:
        return refused
    raise AssertionError


def test_what_comes_before_the_host_speaks_is_dropped() -> None:
    program = through(
        Said((b"motd\n", b"a banner"), (b"\ndoctor-", b""), (b"mark\nits ", b""), (b"own", b"x"))
    )
    assert [program.take() for _ in range(4)] == [(b"", b""), (b"", b""), (b"its ", b""), (b"own", b"x")]
    assert program.finished()


def test_why_a_gateway_does_not_reach_a_host() -> None:
    denied = why((b"", b"root@node1: Permission denied (publickey).\r\n"))
    assert (denied.kind, denied.commands[0]) == (UnreachedKind.AUTH, "ssh gw1 ssh -v node1 true")
    assert why((b"", b"Host key verification failed.\n")).kind is UnreachedKind.KEY_UNKNOWN
    refused = why((b"", b"ssh: connect to host node1 port 22: Connection refused\n"))
    assert refused.kind is UnreachedKind.REFUSED
    assert "seen from the jump host gw1" in refused.summary
    assert why((b"", b"sh: 1: ssh: not found\n"), code=127).kind is UnreachedKind.JUMP
    assert why((b"", b""), code=None).kind is UnreachedKind.LOST
    assert why((b"", b"")).kind is UnreachedKind.OTHER


def test_a_gateway_that_never_stops_talking_costs_no_memory() -> None:
    program = through(Said(*[(b"x" * 65536, b"\x1b[2J" * 20000)] * 100, (b"", b"\x1b[31m refused \x07\n")))
    said = ""
    while not said:
        try:
            assert program.take() == (b"", b"")
        except CannotReach as refused:
            said = refused.summary
        assert len(program._out) + len(program._err) <= 2 * MOST_BEFORE
    assert said.isprintable()
