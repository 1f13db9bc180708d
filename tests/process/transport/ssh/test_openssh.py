"""The system's `ssh` as the way to hosts: what our own SSH lacks, why it fails, and what it leaves."""

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil
import pytest

from doctor.errors import UsageError
from doctor.model import Answer, Host, UnreachedHost, UnreachedKind
from doctor.transport import Line, Script
from doctor.transport.openssh import OpensshTransport
from doctor.transport.routing import RoutedTransport
from doctor.transport.ssh.settings import SshSettings
from tests.support.cases import from_cases
from tests.support.transport_servers import SSHD, Sshd, config, free_port, make_key, public, sh, why_ended

pytestmark = pytest.mark.skipif(not SSHD.exists(), reason="needs an SSH server to talk to")


@pytest.fixture(autouse=True)
def room(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where the sockets of masters are; nothing stays there, and no master stays."""
    folder = Path(tempfile.mkdtemp(prefix="room-", dir="/tmp"))
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    yield folder
    left = [str(each) for each in folder.iterdir()] + list(masters(folder))
    shutil.rmtree(folder)
    assert left == []


def test_a_long_folder_for_temporary_files(
    tmp_path: Path, server: Sshd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The path of a socket may have 107 characters."""
    deep = tmp_path / ("d" * 90)
    deep.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(deep))
    transport = OpensshTransport([server.host()], SshSettings(config_file=config(tmp_path, server)))
    assert isinstance(outcome(transport, server.host()), Answer)


def masters(folder: Path) -> Sequence[str]:
    listed = (each.info["cmdline"] or [""] for each in psutil.process_iter(["cmdline"]))
    return [" ".join(words) for words in listed if words[0] == "ssh" and any(str(folder) in w for w in words)]


def outcome(transport: OpensshTransport | RoutedTransport, host: Host) -> Answer | UnreachedHost:
    try:
        (found,) = transport.run({host.name: sh("echo hi")}, 15)
        return found
    finally:
        transport.close()


def failure(host: Host, file: str) -> UnreachedHost:
    why = outcome(OpensshTransport([host], SshSettings(config_file=file)), host)
    assert isinstance(why, UnreachedHost), why
    assert host.name not in why.summary, "equal faults of many hosts must read alike"
    return why


def test_one_login_for_all_questions_and_sessions(tmp_path: Path, server: Sshd, room: Path) -> None:
    before = server.log.read_text().count("Accepted publickey")
    transport = OpensshTransport([server.host()], SshSettings(config_file=config(tmp_path, server)))
    for _ in range(3):
        (got,) = transport.run({"box": sh("echo $SSH_CONNECTION | cut -c1-9")}, 15)
        assert isinstance(got, Answer)
        assert got.stdout.startswith(b"127.0.0.1\n")
    session = transport.open({"box": Script("cat", b"hello\n", b"")})
    assert session.receive(10) == Line("box", b"hello")
    session.close()
    assert len(masters(room)) == 1
    assert oct(next(room.iterdir()).stat().st_mode)[-3:] == "700"
    transport.close()
    assert server.log.read_text().count("Accepted publickey") == before + 1


def test_a_connection_that_breaks_is_told_and_made_anew(tmp_path: Path, server: Sshd, room: Path) -> None:
    transport = OpensshTransport([server.host()], SshSettings(config_file=config(tmp_path, server)))
    session = transport.open({"box": Script("cat", b"hello\n", b"")})
    assert session.receive(10) == Line("box", b"hello")
    subprocess.run(["pkill", "-KILL", "-f", f"^ssh .* -N .*{room}"], check=True)
    assert why_ended(session) is UnreachedKind.LOST
    session.close()
    assert isinstance(outcome(transport, server.host()), Answer)


@pytest.mark.parametrize(
    ("kind", "more", "address"),
    [
        (UnreachedKind.AUTH, "PubkeyAuthentication no", "127.0.0.1"),
        (UnreachedKind.KEY_UNKNOWN, "UserKnownHostsFile none", "127.0.0.1"),
        (UnreachedKind.NAME, "", "no-such-host.invalid"),
        (UnreachedKind.REFUSED, "Port {}", "127.0.0.1"),
    ],
)
def test_why_it_does_not_get_there(
    kind: UnreachedKind, more: str, address: str, tmp_path: Path, server: Sshd
) -> None:
    port = None if "Port" in more else server.port
    assert (
        failure(Host("box", address, port=port), config(tmp_path, server, more.format(free_port()))).kind
        is kind
    )


def test_a_host_with_another_key(tmp_path: Path, server: Sshd) -> None:
    file = config(tmp_path, server)
    other = public(make_key(tmp_path / "other"))
    (tmp_path / "known_hosts").write_text(f"[127.0.0.1]:{server.port} {other}\n")
    assert failure(server.host(), file).kind is UnreachedKind.KEY_CHANGED


def test_a_broken_ssh_config_is_a_mistake_of_the_user(tmp_path: Path, server: Sshd) -> None:
    with pytest.raises(UsageError, match="Bad configuration option: nonsense"):
        failure(server.host(), config(tmp_path, server, "Nonsense yes"))


def test_without_ssh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UsageError, match="there is no ssh on the PATH"):
        OpensshTransport([Host("box", "box")], SshSettings())


def test_a_master_of_the_users_own_is_used_and_stays(tmp_path: Path, server: Sshd, room: Path) -> None:
    """Its login needs a key that is gone meanwhile, as after a second factor."""
    at = tmp_path / "own"
    file = config(tmp_path, server, f"ControlPath {at}")
    options = ["-F", file, "-p", str(server.port), "-o", "HostName=127.0.0.1"]
    subprocess.run(["ssh", *options, "-M", "-f", "-N", "box"], check=True, stdin=subprocess.DEVNULL)
    try:
        Path(file).write_text(Path(file).read_text().replace(str(server.key), "none"))
        got = outcome(OpensshTransport([server.host()], SshSettings(config_file=file)), server.host())
        assert isinstance(got, Answer), got
        assert masters(room) == []
        assert at.exists()
    finally:
        subprocess.run(["ssh", *options, "-O", "exit", "box"], check=True, capture_output=True)


@pytest.mark.parametrize("by", ["auto", "ssh"])
def test_ssh_itself_is_taken_where_ours_lacks_what_is_needed(by: str, tmp_path: Path, server: Sshd) -> None:
    """Only a command knows the key of the host; `--transport ssh` insists on our own SSH."""
    known = tmp_path / "ask"
    known.write_text(f"#!/bin/sh\necho '{server.known()}'\n")
    known.chmod(0o755)
    file = config(tmp_path, server, f"KnownHostsCommand {known}\nUserKnownHostsFile none")
    routed = RoutedTransport([server.host()], SshSettings(config_file=file), by)
    got = outcome(routed, server.host())
    if by == "auto":
        assert isinstance(got, Answer), got
        assert routed.warnings == ["ssh itself was used where doctor's own SSH lacks KnownHostsCommand."]
    else:
        assert isinstance(got, UnreachedHost)
        assert (got.kind, routed.warnings) == (UnreachedKind.KEY_UNKNOWN, [])


@pytest.mark.parametrize("more", ["", "\nNonsense yes"])
def test_if_ssh_does_not_get_there_either_our_own_reason_counts(
    more: str, tmp_path: Path, server: Sshd
) -> None:
    file = config(tmp_path, server, f"KnownHostsCommand /bin/true\nUserKnownHostsFile none{more}")
    routed = RoutedTransport([server.host()], SshSettings(config_file=file), "auto")
    got = outcome(routed, server.host())
    assert isinstance(got, UnreachedHost)
    assert got.summary == "The host key is not known."
    assert routed.warnings == []


KILLED = from_cases(__file__, "KILLED", str)


def test_a_kill_at_any_moment_leaves_nothing(tmp_path: Path, server: Sshd, room: Path) -> None:
    drawn = random.Random(5)
    argv = [sys.executable, "-c", KILLED, config(tmp_path, server), str(server.port)]
    env = {**os.environ, "TMPDIR": str(room)}
    for _ in range(12):
        with subprocess.Popen(argv, stdout=subprocess.PIPE, env=env) as doctor:
            assert doctor.stdout is not None
            doctor.stdout.readline()
            time.sleep(drawn.uniform(0.0, 0.6))
            doctor.send_signal(signal.SIGKILL)
    end = time.monotonic() + 10
    while (masters(room) or any(room.iterdir())) and time.monotonic() < end:
        time.sleep(0.05)
