"""The settings of a host from ssh_config, the inventory and the flags, and its entries in known_hosts."""

import base64
import time
from pathlib import Path

import pytest

from doctor.errors import UsageError
from doctor.model import Host
from doctor.transport.ssh.config import HostSettings, SshConfig
from doctor.transport.ssh.errors import PresentedKey, key_changed
from doctor.transport.ssh.known_hosts import KeyJudgement, KnownHosts
from doctor.transport.ssh.settings import SshSettings
from tests.support.cases import cases


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    (folder / ".ssh").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("LOGNAME", "me")
    return folder


def read(home: Path, text: str, host: Host | str = "node1", **flags: object) -> HostSettings:
    file = home / ".ssh" / "config"
    file.write_text(text)
    settings = SshSettings(config_file=str(file), **flags)  # type: ignore[arg-type]
    return SshConfig(settings).of(Host(host, host) if isinstance(host, str) else host)


def test_without_any_file_the_defaults_are_those_of_ssh() -> None:
    got = SshConfig(SshSettings(config_file="none")).of(Host("node1", "node1"))
    assert (got.address, got.port, got.user, got.identities, got.connect_timeout) == (
        "node1",
        22,
        "me",
        (),
        10,
    )


def test_flags_override_the_inventory_which_overrides_the_file(home: Path) -> None:
    text = "Host node1\nUser file\nPort 1\nConnectTimeout 3\n"
    assert (read(home, text).user, read(home, text).port, read(home, text).connect_timeout) == ("file", 1, 3)
    mine = Host("node1", "node1", user="inventory", port=2)
    assert (read(home, text, mine).user, read(home, text, mine).port) == ("inventory", 2)
    got = read(home, text, mine, user="flag", port=3, connect_timeout=4.0)
    assert (got.user, got.port, got.connect_timeout) == ("flag", 3, 4)


def test_the_host_name_counts_unless_an_address_was_given(home: Path) -> None:
    text = "Host node1\nHostName real.example\nUser one\n"
    assert read(home, text).address == "real.example"
    got = read(home, text, Host("node1", "10.0.0.9"))
    assert (got.address, got.user) == ("10.0.0.9", "one")


def test_a_block_for_the_address_applies_too(home: Path) -> None:
    got = read(home, "Host 10.0.0.*\nUser net\n", Host("node1", "10.0.0.9"))
    assert got.user == "net"


def test_tokens_are_replaced_by_the_values_of_the_connection(home: Path) -> None:
    text = "Host *\nIdentityFile ~/keys/%r@%h\nProxyCommand nc %% %h %p %r %n %u\nHostName %h.example\n"
    got = read(home, text, port=2222, user="you")
    assert got.identities == (f"{home}/keys/you@node1.example",)
    assert got.proxy_command == "nc % node1.example 2222 you node1 me"


def test_include_is_relative_to_the_folder_of_ssh_and_takes_patterns(home: Path) -> None:
    folder = home / ".ssh" / "conf.d"
    folder.mkdir()
    (folder / "a").write_text("Host node1\nUser a\n")
    (folder / "b").write_text("Host node2\nUser b\n")
    text = "Include conf.d/* missing/*\nPort 99\nHost node2\nPort 98\n"
    assert (read(home, text).user, read(home, text).port) == ("a", 99)
    assert (read(home, text, "node2").user, read(home, text, "node2").port) == ("b", 99)


def test_include_inside_a_block_counts_only_there(home: Path) -> None:
    (home / ".ssh" / "more").write_text("User inner\nHost node2\nPort 7\n")
    text = "Host node1 node2\nInclude more\nUser outer\nConnectTimeout 5\nHost *\nUser all\n"
    first, second, third = (read(home, text, name) for name in ("node1", "node2", "node3"))
    assert (first.user, first.port, first.connect_timeout) == ("inner", 22, 5)
    assert (second.user, second.port, second.connect_timeout) == ("inner", 7, 5)
    assert (third.user, third.port, third.connect_timeout) == ("all", 22, 10)


def test_include_of_itself_ends(home: Path) -> None:
    with pytest.raises(UsageError, match="nested"):
        read(home, "Include config\n")


def test_match(home: Path) -> None:
    text = (
        "Match host node1 user me\nPort 5\n"
        "Match originalhost node2\nPort 6\n"
        "Match !host node*\nPort 7\n"
        "Match all\nUser everyone\n"
    )
    ports = [read(home, text, name).port for name in ("node1", "node2", "gpu1")]
    assert ports == [5, 6, 7]
    assert read(home, text).user == "everyone"


def test_a_criterion_that_cannot_be_judged_matches_nothing(home: Path) -> None:
    text = "Match localnetwork 10.0.0.0/8\nUser wrong\nMatch host node1 tagged x\nPort 1\n"
    assert (read(home, text).user, read(home, text).port) == ("me", 22)


def test_patterns_with_exceptions(home: Path) -> None:
    text = "Host node* !node2\nUser some\n"
    assert [read(home, text, name).user for name in ("node1", "node2")] == ["some", "me"]


@cases
def test_a_broken_file_is_named_with_its_line(home: Path, text: str, said: str) -> None:
    with pytest.raises(UsageError, match="config") as caught:
        read(home, text)
    assert said in caught.value.message


def test_a_file_that_was_asked_for_must_exist() -> None:
    with pytest.raises(UsageError, match="does not exist"):
        SshConfig(SshSettings(config_file="/nonexistent/config"))


@pytest.mark.parametrize("file", ["none", "/dev/null"])
def test_the_option_can_exclude_all_files(home: Path, file: str) -> None:
    (home / ".ssh" / "config").write_text("User wrong\n")
    assert SshConfig(SshSettings(config_file=file)).of(Host("node1", "node1")).user == "me"


def test_the_default_file_is_optional(home: Path) -> None:
    assert SshConfig(SshSettings()).of(Host("node1", "node1")).port == 22
    (home / ".ssh" / "config").write_text("Port 5\n")
    assert SshConfig(SshSettings()).of(Host("node1", "node1")).port == 5


@cases
def test_strict_host_key_checking(home: Path, value: str, accepted: bool) -> None:
    assert read(home, f"StrictHostKeyChecking {value}\n").accept_new is accepted


def test_several_files_of_known_hosts(home: Path) -> None:
    got = read(home, 'UserKnownHostsFile ~/a "/b c"\nGlobalKnownHostsFile none\n')
    assert got.user_known_hosts == (f"{home}/a", "/b c")
    assert got.global_known_hosts == ()


@cases
def test_jump_hosts(spec: str, expected: tuple[str, int, str]) -> None:
    got = SshConfig(SshSettings(config_file="none", user="target", port=9)).jump(spec)
    assert (got.address, got.port, got.user) == expected


def test_a_jump_flag_replaces_the_files_proxy_command(home: Path) -> None:
    got = read(home, "ProxyCommand nc %h %p\nProxyJump other\n", jump="a, b")
    assert (got.jumps, got.proxy_command) == (("a", "b"), None)
    assert read(home, "ProxyJump none\n").jumps == ()


@pytest.mark.slow
def test_evaluating_many_hosts_is_quick(home: Path) -> None:
    text = (
        "".join(f"Host node{n}\nHostName 10.0.{n // 250}.{n % 250}\n" for n in range(300))
        + "Host *\nUser me\n"
    )
    (home / ".ssh" / "config").write_text(text)
    config = SshConfig(SshSettings())
    begun = time.process_time()
    addresses = {config.of(Host(f"node{n}", f"node{n}")).address for n in range(300)}
    assert len(addresses) == 300
    assert time.process_time() - begun < 3


def key(kind: str, body: str) -> bytes:
    return len(kind).to_bytes(4, "big") + kind.encode() + body.encode()


ED, RSA = key("ssh-ed25519", "one"), key("ssh-rsa", "two")


def line(names: str, blob: bytes, mark: str = "") -> str:
    return f"{mark}{names} {blob[4 : 4 + blob[3]].decode()} {base64.b64encode(blob).decode()} comment\n"


def judge(tmp_path: Path, text: str, name: str, blob: bytes) -> KeyJudgement:
    file = tmp_path / "known"
    file.write_text(text)
    return KnownHosts().known([name], [str(file), "/nonexistent"]).judge(blob)[0]


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        (line("node1,10.0.0.1", ED), "10.0.0.1", KeyJudgement.KNOWN),
        (line("NODE1", ED), "node1", KeyJudgement.KNOWN),
        (line("node1", RSA), "node1", KeyJudgement.CHANGED),
        (line("node1", RSA) + line("node1", ED), "node1", KeyJudgement.KNOWN),
        (line("node2", ED), "node1", KeyJudgement.UNKNOWN),
        (line("*.example,!bad.example", ED), "good.example", KeyJudgement.KNOWN),
        (line("*.example,!bad.example", ED), "bad.example", KeyJudgement.UNKNOWN),
        (line("[node1]:2222", ED), "[node1]:2222", KeyJudgement.KNOWN),
        (line("[node?]:2222", ED), "[node1]:2222", KeyJudgement.KNOWN),
        (line("[node1]:2222", ED), "node1", KeyJudgement.UNKNOWN),
        (line("node1", ED) + line("*", ED, "@revoked "), "node1", KeyJudgement.REVOKED),
        (line("node1", ED, "@cert-authority "), "node1", KeyJudgement.UNKNOWN),
        (
            "# text\n\nnode1\nnode1 ssh-ed25519 ???\n@other node1 a b\n|1|x|y| z w\n",
            "node1",
            KeyJudgement.UNKNOWN,
        ),
    ],
)
def test_known_hosts(tmp_path: Path, text: str, name: str, expected: KeyJudgement) -> None:
    assert judge(tmp_path, text, name, ED) is expected


@pytest.mark.slow
def test_looking_up_hashed_names_is_quick(tmp_path: Path) -> None:
    file = tmp_path / "known"
    salt = base64.b64encode(b"s" * 20).decode()
    file.write_text("".join(line(f"|1|{salt}|{salt}", ED) for _ in range(900)))
    book = KnownHosts()
    begun = time.process_time()
    for n in range(100):
        book.known([f"node{n}"], [str(file)])
    assert time.process_time() - begun < 1


def test_commands_are_quoted(home: Path) -> None:
    to = read(home, "", Host("a b", "x;y")).destination()
    why = key_changed(to, PresentedKey("k", "f", "[x;y]:1"), "old", "/a b", 1, False)
    assert why.commands[0] == "ssh-keygen -f '/a b' -R '[x;y]:1'"
    assert why.commands[1].endswith("'me@a b' true")


def test_known_hosts_may_be_dev_null() -> None:
    KnownHosts().add("node1", "ssh-ed25519", ED, "/dev/null", False)
