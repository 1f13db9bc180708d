"""Routes to a host: jump hosts, ProxyCommand, agents and certificates, and a mixture of SSH and local."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from getpass import getuser
from pathlib import Path

import psutil
import pytest

from doctor.model import Answer, Host, UnreachedHost, UnreachedKind
from doctor.transport import Line, Script
from doctor.transport.routing import RoutedTransport
from doctor.transport.ssh.settings import SshSettings
from tests.support.cases import from_cases
from tests.support.transport_servers import (
    SSHD,
    Sshd,
    answer,
    config,
    failure,
    free_port,
    make_key,
    outcomes,
    public,
    sh,
    sshd,
)

pytestmark = pytest.mark.skipif(not SSHD.exists(), reason="needs an SSH server to talk to")

RELAY = from_cases(__file__, "RELAY", str)


@pytest.fixture(scope="module")
def jump(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with sshd(tmp_path_factory.mktemp("jump")) as running:
        yield running


def through(tmp_path: Path, server: Sshd, jump: Sshd) -> str:
    """An ssh_config in which the jump host is called `gate`."""
    gate = f"Host gate\nHostName 127.0.0.1\nPort {jump.port}\nIdentityFile {jump.key}\nIdentitiesOnly yes"
    path = config(tmp_path, server, gate)
    with (tmp_path / "known_hosts").open("a") as known:
        known.write(jump.known() + "\n")
    return path


def logins(server: Sshd) -> int:
    return server.log.read_text().count("Accepted publickey")


def test_many_hosts_through_one_jump_host(tmp_path: Path, server: Sshd, jump: Sshd) -> None:
    before = logins(jump)
    hosts = [server.host(f"box{n}") for n in range(12)]
    got = outcomes(hosts, SshSettings(config_file=through(tmp_path, server, jump), jump="gate"))
    assert [type(a) for a in got.values()] == [Answer] * 12, got
    assert logins(jump) == before + 1


def test_a_chain_of_jump_hosts_with_user_and_port(tmp_path: Path, server: Sshd, jump: Sshd) -> None:
    with sshd(tmp_path / "second") as second:
        path = through(tmp_path, server, jump)
        with (tmp_path / "known_hosts").open("a") as known:
            known.write(second.known() + "\n")
        settings = SshSettings(
            config_file=path, jump=f"gate,{getuser()}@127.0.0.1:{second.port}", identities=(str(second.key),)
        )
        answer(server.host(), settings)
        assert logins(second) == 1


def test_a_jump_host_from_the_file(tmp_path: Path, server: Sshd, jump: Sshd) -> None:
    path = through(tmp_path, server, jump)
    Path(path).write_text(f"Host box\nProxyJump gate\n{Path(path).read_text()}")
    before = logins(jump)
    answer(server.host(), SshSettings(config_file=path))
    assert logins(jump) == before + 1


def test_a_jump_host_that_is_down_is_the_same_fault_for_all(tmp_path: Path, server: Sshd) -> None:
    gate = f"Host gate\nHostName 127.0.0.1\nPort {free_port()}"
    hosts = [server.host(f"box{n}") for n in range(4)]
    got = outcomes(hosts, SshSettings(config_file=config(tmp_path, server, gate), jump="gate"))
    faults = [u for u in got.values() if isinstance(u, UnreachedHost)]
    assert len(faults) == 4
    assert {u.kind for u in faults} == {UnreachedKind.JUMP}
    [summary] = {u.summary for u in faults}
    assert "gate" in summary
    assert "refused" in summary


def test_a_jump_host_whose_key_is_unknown(tmp_path: Path, server: Sshd, jump: Sshd) -> None:
    path = through(tmp_path, server, jump)
    (tmp_path / "known_hosts").write_text(server.known() + "\n")
    why = failure(server.host(), SshSettings(config_file=path, jump="gate"))
    assert why.kind is UnreachedKind.JUMP
    assert "host key is not known" in why.summary


def test_faults_behind_the_jump_host_belong_to_the_host(tmp_path: Path, server: Sshd, jump: Sshd) -> None:
    hosts = [
        server.host("fine"),
        Host("refused", "127.0.0.1", port=free_port()),
        Host("nameless", "no-such-host.invalid", port=server.port),
    ]
    got = outcomes(hosts, SshSettings(config_file=through(tmp_path, server, jump), jump="gate"))
    assert isinstance(got["fine"], Answer)
    kinds = {name: u.kind for name, u in got.items() if isinstance(u, UnreachedHost)}
    assert kinds == {"refused": UnreachedKind.REFUSED, "nameless": UnreachedKind.NAME}
    assert all("jump host gate" in u.summary for u in got.values() if isinstance(u, UnreachedHost))


def test_a_jump_host_that_forwards_nothing(tmp_path: Path, server: Sshd) -> None:
    with sshd(tmp_path / "closed", "AllowTcpForwarding no") as closed:
        why = failure(server.host(), SshSettings(config_file=through(tmp_path, server, closed), jump="gate"))
    assert why.kind is UnreachedKind.JUMP
    assert any("AllowTcpForwarding" in command for command in why.commands)


def test_jump_hosts_in_a_circle(tmp_path: Path, server: Sshd) -> None:
    circle = "Host a\nProxyJump b\nHost b\nProxyJump a"
    why = failure(server.host(), SshSettings(config_file=config(tmp_path, server, circle), jump="a"))
    assert why.kind is UnreachedKind.JUMP
    assert "circle" in why.summary


def test_a_proxy_command_with_tokens(tmp_path: Path, server: Sshd) -> None:
    relay = tmp_path / "relay.py"
    relay.write_text(RELAY)
    proxy = f"ProxyCommand {sys.executable} {relay} %h %p"
    answer(server.host(), SshSettings(config_file=config(tmp_path, server, proxy)))


def test_a_proxy_command_that_fails(tmp_path: Path, server: Sshd) -> None:
    proxy = "ProxyCommand sh -c 'echo no way to %h >&2; exit 3'"
    begun = time.monotonic()
    why = failure(server.host(), SshSettings(config_file=config(tmp_path, server, proxy)))
    assert "no way to 127.0.0.1" in why.summary
    assert time.monotonic() - begun < 30


def test_a_proxy_command_is_ended_with_its_connection(tmp_path: Path, server: Sshd) -> None:
    relay = tmp_path / "relay.py"
    relay.write_text(RELAY)
    mark = tmp_path / "pid"
    proxy = f"ProxyCommand sh -c 'echo $$ > {mark}; exec {sys.executable} {relay} %h %p'"
    answer(server.host(), SshSettings(config_file=config(tmp_path, server, proxy)))
    until = time.monotonic() + 3
    while psutil.pid_exists(int(mark.read_text())) and time.monotonic() < until:
        time.sleep(0.02)
    assert not psutil.pid_exists(int(mark.read_text()))


def test_an_address_of_ipv6(tmp_path: Path, server: Sshd) -> None:
    why = failure(Host("box", "::1", port=free_port()), SshSettings(config_file=config(tmp_path, server)))
    assert why.kind in (UnreachedKind.REFUSED, UnreachedKind.NO_ROUTE)


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    path = str(tmp_path / "agent")
    process = subprocess.Popen(["ssh-agent", "-D", "-a", path], stdout=subprocess.DEVNULL)
    until = time.monotonic() + 5
    while not Path(path).exists() and time.monotonic() < until:
        time.sleep(0.01)
    monkeypatch.setenv("SSH_AUTH_SOCK", path)
    yield path
    process.terminate()
    process.wait(5)


def add(key: Path) -> None:
    subprocess.run(["ssh-add", "-q", str(key)], check=True)


def test_a_key_of_the_agent(tmp_path: Path, server: Sshd, agent: str) -> None:
    assert agent
    add(server.key)
    hosts = [server.host(f"box{n}") for n in range(8)]
    got = outcomes(hosts, SshSettings(config_file=config(tmp_path, server, key=None, agent=True)))
    assert [type(a) for a in got.values()] == [Answer] * 8


@pytest.mark.parametrize("named", ["login", "login.pub"])
def test_a_key_with_a_passphrase_that_the_agent_has(
    tmp_path: Path, server: Sshd, agent: str, named: str
) -> None:
    assert agent
    add(server.key)
    locked = Path(shutil.copy(server.key, tmp_path / "login"))
    shutil.copy(server.key.with_name("login.pub"), tmp_path / "login.pub")
    subprocess.run(
        ["ssh-keygen", "-q", "-p", "-N", "secret", "-f", locked], check=True, stdout=subprocess.DEVNULL
    )
    path = config(tmp_path, server, "IdentitiesOnly yes", key=tmp_path / named, agent=True)
    answer(server.host(), SshSettings(config_file=path))


def test_identities_only_leaves_the_agent_out(tmp_path: Path, server: Sshd, agent: str) -> None:
    assert agent
    add(server.key)
    other = make_key(tmp_path / "other")
    path = config(tmp_path, server, "IdentitiesOnly yes", key=other, agent=True)
    why = failure(server.host(), SshSettings(config_file=path))
    assert why.kind is UnreachedKind.AUTH
    assert "agent" not in why.summary


def test_an_agent_that_never_answers(tmp_path: Path, server: Sshd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("doctor.transport.ssh.keys.AGENT_SECONDS", 0.3)
    with socket.socket(socket.AF_UNIX) as mute:
        mute.bind(str(tmp_path / "mute"))
        mute.listen(1)
        monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "mute"))
        begun = time.monotonic()
        why = failure(server.host(), SshSettings(config_file=config(tmp_path, server, key=None, agent=True)))
    assert why.kind is UnreachedKind.AUTH
    assert time.monotonic() - begun < 30


def test_a_certificate(tmp_path: Path) -> None:
    authority = make_key(tmp_path / "authority")
    with sshd(tmp_path / "sshd", f"TrustedUserCAKeys {authority}.pub") as trusting:
        mine = make_key(tmp_path / "mine")
        subprocess.run(
            ["ssh-keygen", "-q", "-s", authority, "-I", "me", "-n", getuser(), f"{mine}.pub"], check=True
        )
        path = Path(config(tmp_path, trusting, key=mine))
        answer(trusting.host(), SshSettings(config_file=str(path), user=getuser()))
        moved = tmp_path / "elsewhere"
        os.rename(f"{mine}-cert.pub", moved)
        assert (
            failure(trusting.host(), SshSettings(config_file=str(path), user=getuser())).kind
            is UnreachedKind.AUTH
        )
        path.write_text(f"CertificateFile {moved}\n{path.read_text()}")
        answer(trusting.host(), SshSettings(config_file=str(path), user=getuser()))


def test_default_identities(home: Path, server: Sshd) -> None:
    mine = home / ".ssh"
    mine.mkdir()
    shutil.copy(server.key, mine / "id_ed25519")
    (mine / "known_hosts").write_text(f"[127.0.0.1]:{server.port} {public(server.host_key)}\n")
    answer(server.host(), SshSettings(config_file="none"))


def test_each_host_by_its_own_way(tmp_path: Path, server: Sshd) -> None:
    pod = Host("pod", "pod", enter="sh", enter_from="controller")
    routed = RoutedTransport([server.host(), pod], SshSettings(config_file=config(tmp_path, server)))
    scripts = {"box": sh("echo $SSH_CONNECTION | cut -c1-9"), "pod": sh("echo $PPID")}
    got = {a.host: a for a in routed.run(scripts, 15)}
    box, inside = got["box"], got["pod"]
    assert isinstance(box, Answer)
    assert isinstance(inside, Answer)
    assert box.stdout == b"127.0.0.1\nDONE\n"
    session = routed.open({name: Script("cat", b"hello\n", b"") for name in scripts})
    assert {session.receive(10), session.receive(10)} == {Line("box", b"hello"), Line("pod", b"hello")}
    session.close()
    routed.close()
