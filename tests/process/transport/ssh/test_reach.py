"""Every way in which a host cannot be reached: each is recognised, with the next command to type."""

import contextlib
import errno
import fcntl
import itertools
import os
import resource
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from doctor.model import Answer, Host, UnreachedHost, UnreachedKind
from doctor.transport import Line, Script, SessionEnd
from doctor.transport.ssh import commands
from doctor.transport.ssh.config import SshConfig
from doctor.transport.ssh.settings import SshSettings
from doctor.transport.ssh.transport import SshTransport
from tests.support.cases import cases
from tests.support.transport_servers import (
    SSHD,
    Relay,
    Sshd,
    answer,
    config,
    failure,
    free_port,
    listener,
    make_key,
    outcomes,
    public,
    sh,
    sshd,
)

pytestmark = pytest.mark.skipif(not SSHD.exists(), reason="needs an SSH server to talk to")


def unheard(folder: Path, port: int, timeout: float = 15, **flags: float) -> UnreachedHost:
    """Why nobody answers at this port as an SSH server would."""
    settings = SshSettings(config_file=config(folder), **flags)  # type: ignore[arg-type]
    return failure(Host("box", "127.0.0.1", port=port), settings, timeout)


def test_a_name_that_does_not_resolve(tmp_path: Path) -> None:
    why = failure(Host("box", "no-such-host.invalid"), SshSettings(config_file=config(tmp_path)))
    assert why.kind is UnreachedKind.NAME
    assert "/etc/hosts" in why.summary
    assert "getent ahosts no-such-host.invalid" in why.commands


def test_no_process_listens(tmp_path: Path) -> None:
    port = free_port()
    why = unheard(tmp_path, port)
    assert why.kind is UnreachedKind.REFUSED
    assert str(port) in why.summary


@pytest.mark.parametrize("number", [errno.EHOSTUNREACH, errno.ENETUNREACH])
def test_no_route(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(socket.socket, "connect", refuse)
    why = failure(Host("box", "198.18.0.1"), SshSettings(config_file=config(tmp_path)))
    assert why.kind is UnreachedKind.NO_ROUTE
    assert os.strerror(number) in why.summary


def test_no_answer_to_tcp(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        place = full.getsockname()
        queued = [socket.socket() for _ in range(4)]
        for sock in queued:
            sock.setblocking(False)
            sock.connect_ex(place)
        begun = time.monotonic()
        why = unheard(tmp_path, place[1], connect_timeout=1)
        for sock in queued:
            sock.close()
    assert why.kind is UnreachedKind.TIMEOUT
    assert "within 1 s" in why.summary
    assert time.monotonic() - begun < 30


def test_a_name_server_that_never_answers_does_not_hold_up_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: stuck.wait(60))
    begun = time.monotonic()
    why = failure(Host("box", "slow.example"), SshSettings(config_file=config(tmp_path)), timeout=1)
    stuck.set()
    assert why.kind is UnreachedKind.TIMEOUT
    assert "name" in why.summary
    assert time.monotonic() - begun < 30


def test_a_key_that_the_host_does_not_take(tmp_path: Path, server: Sshd) -> None:
    other = make_key(tmp_path / "other")
    path = config(tmp_path, server, "User somebody", key=other)
    why = failure(server.host(), SshSettings(config_file=path))
    assert why.kind is UnreachedKind.AUTH
    assert "somebody" in why.summary
    assert str(other) in why.summary
    assert "publickey" in why.summary
    assert why.commands == (f"ssh -F {path} -p {server.port} -v somebody@box true",)


@cases
def test_how_only_ssh_can_log_in_is_named(
    tmp_path: Path, keywords: str, server_allows: str, said: str | None
) -> None:
    with sshd(tmp_path / "sshd", server_allows) as server:
        path = config(tmp_path, server, f"Host *\n{keywords}", key=None)
        why = failure(server.host(), SshSettings(config_file=path))
    assert why.kind is UnreachedKind.AUTH
    if said:
        assert f"does not have {said} of ssh_config: give it a key" in why.remedy
    assert ("of ssh_config" in why.remedy) == (said is not None)


def test_no_key_at_all(tmp_path: Path, server: Sshd) -> None:
    why = failure(server.host(), SshSettings(config_file=config(tmp_path, server, key=None)))
    assert why.kind is UnreachedKind.AUTH
    assert "no key to offer" in why.summary


def test_a_key_with_a_passphrase(tmp_path: Path, server: Sshd) -> None:
    locked = make_key(tmp_path / "locked", passphrase="secret")
    path = config(tmp_path, server, key=locked)
    why = failure(server.host(), SshSettings(config_file=path))
    assert why.kind is UnreachedKind.AUTH
    assert "needs a passphrase" in why.summary
    assert why.commands[0] == f"ssh-add {locked}"


def test_a_key_file_that_does_not_exist(tmp_path: Path, server: Sshd) -> None:
    path = config(tmp_path, server, key="~/.ssh/nothing")
    why = failure(server.host(), SshSettings(config_file=path))
    assert why.kind is UnreachedKind.AUTH
    assert ".ssh/nothing (does not exist)" in why.summary


def test_a_server_that_refuses_too_many_keys(tmp_path: Path, server: Sshd) -> None:
    wrong = [make_key(tmp_path / f"wrong{n}") for n in range(7)]
    path = config(tmp_path, server, "\n".join(f"IdentityFile {key}" for key in wrong))
    why = failure(server.host(), SshSettings(config_file=path))
    assert why.kind is UnreachedKind.AUTH
    assert "Too many authentication failures" in why.summary
    assert "IdentitiesOnly" in why.remedy


def test_the_flag_overrides_the_file(tmp_path: Path, server: Sshd) -> None:
    path = config(tmp_path, server, key="/nonexistent")
    got = answer(server.host(), SshSettings(config_file=path, identities=(str(server.key),)))
    assert got.rc == 0


def test_an_unknown_host_key(tmp_path: Path, server: Sshd) -> None:
    path = config(tmp_path, server)
    (tmp_path / "known_hosts").unlink()
    why = failure(server.host(), SshSettings(config_file=path))
    assert why.kind is UnreachedKind.KEY_UNKNOWN
    assert "SHA256:" in why.detail
    assert any(command.startswith(f"ssh-keyscan -p {server.port} 127.0.0.1") for command in why.commands)
    assert not (tmp_path / "known_hosts").exists()


def test_a_host_key_that_only_ssh_looks_up(tmp_path: Path, server: Sshd) -> None:
    path = config(tmp_path, server, "KnownHostsCommand /usr/bin/our-host-keys %H")
    (tmp_path / "known_hosts").unlink()
    why = failure(server.host(), SshSettings(config_file=path))
    assert why.kind is UnreachedKind.KEY_UNKNOWN
    assert "does not have KnownHostsCommand of ssh_config" in why.remedy
    # `ssh` by hand would leave nothing in known_hosts.
    assert not any(command.startswith("ssh ") for command in why.commands)


@pytest.mark.parametrize("by_flag", [True, False])
def test_a_new_key_is_accepted_and_written_once(tmp_path: Path, server: Sshd, by_flag: bool) -> None:
    known = tmp_path / "deep" / "known_hosts"
    more = f"Host *\nUserKnownHostsFile {known}" + ("" if by_flag else "\nStrictHostKeyChecking no")
    settings = SshSettings(config_file=config(tmp_path, server, more), accept_new=by_flag)
    hosts = [server.host(f"box{n}") for n in range(6)]
    got = outcomes(hosts, settings)
    assert all(isinstance(a, Answer) for a in got.values())
    assert known.read_text() == server.known() + "\n"
    assert known.stat().st_mode & 0o777 == 0o600
    assert known.parent.stat().st_mode & 0o777 == 0o700
    assert isinstance(outcomes(hosts[:1], SshSettings(config_file=settings.config_file))["box0"], Answer)


def test_a_new_key_is_hashed_where_that_is_asked_for(tmp_path: Path, server: Sshd) -> None:
    path = config(tmp_path, server, "HashKnownHosts yes")
    known = tmp_path / "known_hosts"
    known.write_text("# no newline at the end")
    for _ in range(2):
        answer(server.host(), SshSettings(config_file=path, accept_new=True))
    lines = known.read_text().splitlines()
    assert len(lines) == 2
    assert lines[1].startswith("|1|")


def test_a_known_hosts_that_cannot_be_written_is_only_a_warning(tmp_path: Path, server: Sshd) -> None:
    more = "Host *\nUserKnownHostsFile /proc/known_hosts"
    transport = SshTransport(
        [server.host()], SshSettings(config_file=config(tmp_path, server, more), accept_new=True)
    )
    [got] = transport.run({"box": sh("echo hi")}, 15)
    transport.close()
    assert isinstance(got, Answer)
    assert "/proc/known_hosts" in transport.warnings[0]


@pytest.mark.parametrize("accept", [True, False])
def test_a_changed_host_key_is_always_refused(tmp_path: Path, server: Sshd, accept: bool) -> None:
    path = config(tmp_path, server)
    old = public(make_key(tmp_path / "old"))
    known = tmp_path / "known_hosts"
    known.write_text(f"# first\n[127.0.0.1]:{server.port} {old}\n")
    why = failure(server.host(), SshSettings(config_file=path, accept_new=accept))
    assert why.kind is UnreachedKind.KEY_CHANGED
    assert f"{known}:2" in why.summary
    assert why.commands[0] == f"ssh-keygen -f {known} -R '[127.0.0.1]:{server.port}'"
    assert known.read_text().count("\n") == 2


def test_the_usual_known_hosts_does_not_need_option_f(home: Path, server: Sshd, tmp_path: Path) -> None:
    (home / ".ssh").mkdir()
    (home / ".ssh" / "known_hosts").write_text(
        f"[127.0.0.1]:{server.port} {public(make_key(tmp_path / 'old'))}\n"
    )
    why = failure(server.host(), SshSettings(config_file="none"))
    assert why.commands[0] == f"ssh-keygen -R '[127.0.0.1]:{server.port}'"


def test_a_host_known_by_another_kind_of_key_is_not_taken_for_new(tmp_path: Path, server: Sshd) -> None:
    path = config(tmp_path, server)
    rsa = public(make_key(tmp_path / "old", "rsa"))
    (tmp_path / "known_hosts").write_text(f"[127.0.0.1]:{server.port} {rsa}\n")
    why = failure(server.host(), SshSettings(config_file=path, accept_new=True))
    assert why.kind is UnreachedKind.KEY_CHANGED


def test_the_known_kind_of_key_is_requested(tmp_path: Path) -> None:
    with sshd(tmp_path / "sshd", host_kinds=("rsa", "ecdsa", "ed25519")) as many:
        for _kind in ("rsa", "ecdsa", "ed25519"):
            path = config(tmp_path, many)
            key = public(tmp_path / "sshd" / f"host_{_kind}")
            (tmp_path / "known_hosts").write_text(f"[127.0.0.1]:{many.port} {key}\n")
            answer(many.host(), SshSettings(config_file=path))


def test_a_revoked_key(tmp_path: Path, server: Sshd) -> None:
    path = config(tmp_path, server)
    known = tmp_path / "known_hosts"
    known.write_text(f"{server.known()}\n@revoked * {public(server.host_key)}\n")
    why = failure(server.host(), SshSettings(config_file=path, accept_new=True))
    assert why.kind is UnreachedKind.KEY_CHANGED
    assert "@revoked" in why.summary
    assert f"{known}:2" in why.summary


def test_a_host_that_only_a_certificate_authority_vouches_for(tmp_path: Path, server: Sshd) -> None:
    path = config(tmp_path, server)
    (tmp_path / "known_hosts").write_text(f"@cert-authority * {public(server.host_key)}\n")
    why = failure(server.host(), SshSettings(config_file=path))
    assert why.kind is UnreachedKind.KEY_UNKNOWN
    assert "certificate authority" in why.summary


def test_a_host_key_alias(tmp_path: Path, server: Sshd) -> None:
    path = config(tmp_path, server, "HostKeyAlias fleet")
    (tmp_path / "known_hosts").write_text(f"fleet {public(server.host_key)}\n")
    answer(server.host(), SshSettings(config_file=path))


def test_a_listener_that_never_greets(tmp_path: Path) -> None:
    with listener(lambda _: time.sleep(5)) as port:
        why = unheard(tmp_path, port, connect_timeout=0.5)
    assert why.kind is UnreachedKind.BANNER
    assert "within 0.5 s" in why.summary


@pytest.mark.parametrize(
    "noise",
    [b"HTTP/1.1 400 Bad Request\r\n" * 200, b"x" * 5_000_000, b"\x1b[2Jhello\n" * 300, b"\x00" * 300_000],
    ids=["http", "no newline", "escapes", "zeros"],
)
def test_something_that_is_not_ssh(tmp_path: Path, noise: bytes) -> None:
    with listener(lambda conn: conn.sendall(noise)) as port:
        why = unheard(tmp_path, port, connect_timeout=3)
    assert why.kind is UnreachedKind.BANNER
    assert "not an SSH server" in why.summary
    assert why.summary.isprintable()
    assert len(why.summary) < 200


def test_lines_without_end_before_the_banner(tmp_path: Path) -> None:
    def babble(conn: socket.socket) -> None:
        while True:
            conn.sendall(b"soon\n" * 1000)

    with listener(babble) as port:
        why = unheard(tmp_path, port)
    assert why.kind is UnreachedKind.BANNER


@pytest.mark.parametrize(
    "packet", [b"\xff\xff\xff\xf0" + b"x" * 1_000_000, b"\x00\x00\x00\x00" * 9, os.urandom(3000)]
)
def test_garbage_after_the_banner(tmp_path: Path, packet: bytes) -> None:
    def lie(conn: socket.socket) -> None:
        conn.sendall(b"SSH-2.0-OpenSSH_9.2\r\n" + packet)
        conn.recv(10)

    with listener(lie) as port:
        why = unheard(tmp_path, port, 3)
    assert why.kind in (UnreachedKind.OTHER, UnreachedKind.LOST)


def test_a_server_that_stops_after_its_banner(tmp_path: Path) -> None:
    def stop(conn: socket.socket) -> None:
        conn.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")
        time.sleep(5)

    with listener(stop) as port:
        why = unheard(tmp_path, port, 1.5, connect_timeout=1)
    assert why.kind is UnreachedKind.TIMEOUT
    assert "key exchange" in why.summary


def test_connections_dropped_before_the_banner_are_tried_again(tmp_path: Path, server: Sshd) -> None:
    relay = Relay(server.port, refuse=2)
    with listener(relay) as port:
        path = config(tmp_path, server, f"HostKeyAlias [127.0.0.1]:{server.port}")
        answer(Host("box", "127.0.0.1", port=port), SshSettings(config_file=path))
    assert relay.seen == 3


def test_a_server_that_always_hangs_up_before_its_banner(tmp_path: Path) -> None:
    def refuse(conn: socket.socket) -> None:
        conn.sendall(b"Not allowed at this time\r\n")

    with listener(refuse) as port:
        why = unheard(tmp_path, port)
    assert why.kind is UnreachedKind.BANNER
    assert "Not allowed at this time" in why.summary
    assert "MaxStartups" in why.remedy


def test_more_logins_at_once_than_the_server_wants(tmp_path: Path) -> None:
    with sshd(tmp_path / "sshd", "MaxStartups 4:100:4") as busy:
        hosts = [busy.host(f"box{n}") for n in range(8)]
        got = outcomes(hosts, SshSettings(config_file=config(tmp_path, busy)))
    assert [type(a) for a in got.values()] == [Answer] * 8, got


def test_a_connection_that_breaks_in_the_handshake(tmp_path: Path, server: Sshd) -> None:
    def cut(conn: socket.socket) -> None:
        with socket.create_connection(("127.0.0.1", server.port)) as far:
            conn.sendall(far.recv(4096))
            conn.recv(100)

    with listener(cut) as port:
        why = failure(Host("box", "127.0.0.1", port=port), SshSettings(config_file=config(tmp_path, server)))
    assert why.kind is UnreachedKind.LOST


def test_nothing_reaches_the_terminal(
    tmp_path: Path, server: Sshd, capfd: pytest.CaptureFixture[str]
) -> None:
    with listener(lambda conn: conn.sendall(b"SSH-2.0-x\r\n" + b"\xff" * 100)) as port:
        unheard(tmp_path, port, 3)
    answer(server.host(), SshSettings(config_file=config(tmp_path, server)))
    assert capfd.readouterr() == ("", "")


def test_equal_faults_of_many_hosts_read_alike(tmp_path: Path) -> None:
    port = free_port()
    hosts = [Host(f"box{n}", "127.0.0.1", port=port) for n in range(3)]
    got = outcomes(hosts, SshSettings(config_file=config(tmp_path)))
    said = {(u.kind, u.summary, u.remedy) for u in got.values() if isinstance(u, UnreachedHost)}
    assert len(said) == 1
    assert len(got) == 3


@cases
def test_commands_of_ssh_config(tmp_path: Path, criteria: str, matches: bool) -> None:
    mark = tmp_path / "mark"
    file = tmp_path / "config"
    file.write_text(f"Match {criteria.format(mark=mark)}\n  User somebody\nHost *\n  User other\n")
    settings = SshConfig(SshSettings(config_file=str(file))).of(Host("box", "box"))
    assert settings.user == ("somebody" if matches else "other")
    assert not mark.exists()


def test_a_command_of_ssh_config_that_hangs_costs_its_host_alone(
    tmp_path: Path, server: Sshd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands.Commands.__init__, "__defaults__", (0.5,))
    path = config(tmp_path, server, 'Match originalhost bad exec "sleep 60"\n  Port 1')
    got = outcomes([server.host("bad"), server.host("good")], SshSettings(config_file=path))
    assert isinstance(got["good"], Answer)
    assert isinstance(bad := got["bad"], UnreachedHost)
    assert bad.summary == "ssh_config: Match exec did not end within 0.5 s: sleep 60."


def test_name_servers_that_are_silent_do_not_outlast_the_run(
    tmp_path: Path, server: Sshd, monkeypatch: pytest.MonkeyPatch
) -> None:
    over = threading.Event()
    real = socket.getaddrinfo

    def slow(name: str, *rest: object, **more: object) -> object:
        if name == "127.0.0.1":
            return real(name, *rest, **more)  # type: ignore[arg-type]
        over.wait(60)
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    hosts = [server.host("good"), *(Host(f"b{n}", f"b{n}.invalid") for n in range(20))]
    transport = SshTransport(hosts, SshSettings(config_file=config(tmp_path, server), fanout=4))
    began = time.monotonic()
    got = {each.host: each for each in transport.run({h.name: sh("echo hi") for h in hosts}, 60, began + 2)}
    assert time.monotonic() - began < 40
    over.set()
    transport.close()
    assert isinstance(got.pop("good"), Answer)
    assert {each.kind for each in got.values() if isinstance(each, UnreachedHost)} == {
        UnreachedKind.TIMEOUT,
        UnreachedKind.DEADLINE,
    }


def limit_that_leaves(free: int) -> int:
    """The limit under which this many files can be opened: it bounds their numbers, and tests before this one
    may have left gaps, and files with high numbers.
    """
    used = {int(name) for name in os.listdir("/proc/self/fd")}
    unused = (number for number in itertools.count() if number not in used)
    return next(itertools.islice(unused, free - 1, None)) + 1


@pytest.fixture
def high_descriptors() -> Iterator[None]:
    """Many files with high numbers, and none below them."""
    with open(os.devnull, "rb") as null, contextlib.ExitStack() as held:
        for _ in range(60):
            held.callback(os.close, fcntl.fcntl(null, fcntl.F_DUPFD_CLOEXEC, 300))
        yield


@pytest.mark.usefixtures("high_descriptors")
def test_a_shortage_of_descriptors_is_no_fault_of_a_host(tmp_path: Path, server: Sshd) -> None:
    hosts = [server.host(f"b{n}") for n in range(30)]
    transport = SshTransport(hosts, SshSettings(config_file=config(tmp_path, server)))
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit_that_leaves(15), before[1]))
    try:
        got = list(transport.run({h.name: sh("echo hi") for h in hosts}, 30))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        transport.close()
    failed = [each for each in got if isinstance(each, UnreachedHost)]
    assert 0 < len(failed) < 30
    assert {each.summary for each in failed} == {"This machine ran out of file descriptors."}


BASH_AS_PROXY = "ProxyCommand bash -c 'exec 3<>/dev/tcp/127.0.0.1/%p; cat <&3 & exec cat >&3'"


@pytest.fixture
def few_descriptors() -> Iterator[int]:
    """A soft limit that leaves some 40 files to this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = limit_that_leaves(40)
    resource.setrlimit(resource.RLIMIT_NOFILE, (few, hard))
    yield few
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_the_soft_limit_of_descriptors_is_raised(tmp_path: Path, server: Sshd, few_descriptors: int) -> None:
    hosts = [server.host(f"b{n}") for n in range(60)]
    transport = SshTransport(hosts, SshSettings(config_file=config(tmp_path, server)))
    session = transport.open({host.name: Script("cat", b"hi\n", b"") for host in hosts})
    heard = [session.receive(30) for _ in hosts]
    session.close()
    transport.close()
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > few_descriptors
    assert all(isinstance(each, Line) for each in heard), heard


@pytest.mark.parametrize("by", ["", BASH_AS_PROXY])
def test_hosts_wait_for_a_descriptor(
    by: str, tmp_path: Path, server: Sshd, few_descriptors: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A question that is asked in turn reaches all; one for all at once says what is missing."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (few_descriptors, few_descriptors))
    hosts = [server.host(f"b{n}") for n in range(60)]
    settings = SshSettings(config_file=config(tmp_path, server, f"Host *\n{by}\n" if by else ""))
    transport = SshTransport(hosts, settings)
    for _ in range(2):
        got = list(transport.run({host.name: sh("echo hi") for host in hosts}, 30))
        assert sorted(each.host for each in got) == sorted(host.name for host in hosts)
        assert all(isinstance(each, Answer) for each in got), got
    session = transport.open({host.name: Script("cat", b"hi\n", b"") for host in hosts})
    heard = [session.receive(30) for _ in hosts]
    ends = [each for each in heard if isinstance(each, SessionEnd)]
    assert 0 < len(ends) < len(hosts)
    why = f"This machine opens at most {few_descriptors} files, too few for connections to all hosts at once."
    assert {each.unreached.summary for each in ends if each.unreached} == {why}
    session.close()
    got = list(transport.run({host.name: sh("echo hi") for host in hosts}, 30))
    assert all(isinstance(each, Answer) for each in got), got
    transport.close()
