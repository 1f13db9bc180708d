"""The settings of a host from ssh_config, the inventory and the flags, and its entries in known_hosts."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from doctor.errors import UsageError
from doctor.model import Host
from doctor.transport.ssh.config import HostSettings, SshConfig
from doctor.transport.ssh.errors import PresentedKey, key_changed
from doctor.transport.ssh.known_hosts import KeyJudgement, KnownHosts
from doctor.transport.ssh.settings import SshSettings
from tests.support.cases import cases
from tests.support.limits import within


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


@cases
def test_a_host_has_the_settings_of_the_file_the_inventory_and_the_flags(
    home: Path, text: str, inventory: dict[str, Any], flags: dict[str, Any], has: dict[str, Any]
) -> None:
    got = read(home, text, Host(**{"name": "node1", "address": "node1", **inventory}), **flags)
    shown = {name: getattr(got, name) for name in has}
    assert json.loads(json.dumps(shown).replace(str(home), "~")) == has


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
def test_jump_hosts(spec: str, expected: tuple[str, int, str]) -> None:
    got = SshConfig(SshSettings(config_file="none", user="target", port=9)).jump(spec)
    assert (got.address, got.port, got.user) == expected


@pytest.mark.slow
def test_evaluating_many_hosts_is_quick(home: Path) -> None:
    text = (
        "".join(f"Host node{n}\nHostName 10.0.{n // 250}.{n % 250}\n" for n in range(300))
        + "Host *\nUser me\n"
    )
    (home / ".ssh" / "config").write_text(text)
    config = SshConfig(SshSettings())
    with within(3):
        addresses = {config.of(Host(f"node{n}", f"node{n}")).address for n in range(300)}
        assert len(addresses) == 300


def key(kind: str, body: str) -> bytes:
    return len(kind).to_bytes(4, "big") + kind.encode() + body.encode()


ED, RSA = key("ssh-ed25519", "one"), key("ssh-rsa", "two")


def written(blob: bytes) -> str:
    return f"{blob[4 : 4 + blob[3]].decode()} {base64.b64encode(blob).decode()} comment\n"


def judge(tmp_path: Path, text: str, name: str, blob: bytes) -> KeyJudgement:
    file = tmp_path / "known"
    file.write_text(text)
    return KnownHosts().known([name], [str(file), "/nonexistent"]).judge(blob)[0]


@cases
def test_known_hosts(tmp_path: Path, text: str, name: str, found: KeyJudgement) -> None:
    lines = text.format(ed=written(ED), rsa=written(RSA))
    assert judge(tmp_path, lines, name, ED) is found


@pytest.mark.slow
def test_looking_up_hashed_names_is_quick(tmp_path: Path) -> None:
    file = tmp_path / "known"
    salt = base64.b64encode(b"s" * 20).decode()
    file.write_text(f"|1|{salt}|{salt} {written(ED)}" * 900)
    book = KnownHosts()
    with within(1):
        for n in range(100):
            book.known([f"node{n}"], [str(file)])


def test_commands_are_quoted(home: Path) -> None:
    to = read(home, "", Host("a b", "x;y")).destination()
    why = key_changed(to, PresentedKey("k", "f", "[x;y]:1"), "old", "/a b", 1, False)
    assert why.commands[0] == "ssh-keygen -f '/a b' -R '[x;y]:1'"
    assert why.commands[1].endswith("'me@a b' true")


def test_known_hosts_may_be_dev_null() -> None:
    KnownHosts().add("node1", "ssh-ed25519", ED, "/dev/null", False)
