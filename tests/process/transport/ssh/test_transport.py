"""What happens over SSH: scripts, sessions, limits, reuse, and closing."""

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from doctor.model import Answer, AnswerEnd, Host, UnreachedHost, UnreachedKind
from doctor.transport import Line, Script, SessionEnd
from doctor.transport.ssh.settings import SshSettings
from doctor.transport.ssh.transport import SshTransport
from tests.support.cases import cases, from_cases
from tests.support.commands import doctor
from tests.support.limits import slowness
from tests.support.paths import ROOT
from tests.support.transport_servers import (
    DONE,
    SSHD,
    Relay,
    Sshd,
    answer,
    config,
    failure,
    listener,
    outcomes,
    sh,
    sshd,
    why_ended,
)

pytestmark = pytest.mark.skipif(not SSHD.exists(), reason="needs an SSH server to talk to")


@pytest.fixture
def settings(tmp_path: Path, server: Sshd) -> SshSettings:
    return SshSettings(config_file=config(tmp_path, server))


@pytest.fixture
def transport(server: Sshd, settings: SshSettings) -> Iterator[SshTransport]:
    made = SshTransport([server.host("box"), server.host("bax")], settings)
    yield made
    made.close()


def test_many_hosts_at_once(server: Sshd, settings: SshSettings) -> None:
    got = outcomes([server.host(f"box{n}") for n in range(12)], settings)
    assert [a.stdout for a in got.values() if isinstance(a, Answer)] == [b"hi\nDONE\n"] * 12


def test_a_silent_shell_ends_at_the_deadline(server: Sshd, settings: SshSettings) -> None:
    got = answer(server.host(), settings, Script("exec sleep 30", b"", DONE), timeout=2.5)
    assert (got.stdout, got.stderr, got.end) == (b"", b"", AnswerEnd.TIMEOUT)


def test_stdin_larger_than_the_window_with_a_peer_that_only_talks(
    server: Sshd, settings: SshSettings
) -> None:
    got = answer(server.host(), settings, Script("head -c 3000000 /dev/zero", b"x" * 5_000_000, DONE))
    assert (len(got.stdout), got.end, got.rc) == (3_000_000, AnswerEnd.DONE, 0)


def test_both_streams_large(server: Sshd, settings: SshSettings) -> None:
    got = answer(
        server.host(),
        settings,
        sh("head -c 4000000 /dev/zero & head -c 4000000 /dev/zero >&2; wait; sleep 1; echo"),
    )
    assert (len(got.stdout), len(got.stderr), got.end) == (4_000_000 + 1 + 5, 4_000_000, AnswerEnd.DONE)


def test_stdin_stays_open_until_the_last_line(server: Sshd, settings: SshSettings) -> None:
    got = answer(server.host(), settings, Script("timeout 0.3 cat; echo $?; echo DONE", b"x", DONE))
    assert got.stdout == b"x124\nDONE\n"


def test_a_cut_connection_keeps_what_was_printed(server: Sshd, tmp_path: Path) -> None:
    relay = Relay(server.port)
    with listener(relay) as port:
        path = config(tmp_path, server, f"Host *\nHostKeyAlias [127.0.0.1]:{server.port}")
        threading.Timer(1.0, relay.cut).start()
        got = answer(
            Host("box", "127.0.0.1", port=port), SshSettings(config_file=path), sh("echo some; sleep 20")
        )
    assert (got.stdout, got.end) == (b"some\n", AnswerEnd.LOST)


def test_one_connection_serves_every_later_channel(server: Sshd, transport: SshTransport) -> None:
    before = server.log.read_text().count("Accepted publickey")
    for _ in range(3):
        [got] = transport.run({"box": sh("echo hi")}, 15)
        assert isinstance(got, Answer)
    transport.open({"box": Script("cat", b"", b"")}).close()
    assert server.log.read_text().count("Accepted publickey") == before + 1


def test_a_connection_that_died_is_opened_again(transport: SshTransport) -> None:
    [first] = transport.run({"box": Script("kill -9 $(ps -o ppid= -p $$)", b"", DONE)}, 15)
    assert isinstance(first, Answer)
    assert first.end is AnswerEnd.LOST
    [again] = transport.run({"box": sh("echo hi")}, 15)
    assert isinstance(again, Answer)


def test_a_refused_second_channel_gets_a_connection_of_its_own(tmp_path: Path) -> None:
    with sshd(tmp_path / "sshd", "MaxSessions 1") as one:
        transport = SshTransport([one.host()], SshSettings(config_file=config(tmp_path, one)))
        session = transport.open({"box": Script("cat", b"hello\n", b"")})
        assert session.receive(10) == Line("box", b"hello")
        [got] = transport.run({"box": sh("echo hi")}, 15)
        assert isinstance(got, Answer), got
        session.send("box", b"still there")
        assert session.receive(10) == Line("box", b"still there")
        transport.close()


def test_closing_a_session_ends_its_programs(transport: SshTransport, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    session = transport.open({"box": Script(f"cat >/dev/null; touch {gone}", b"", b"")})
    session.send("box", b"x")
    time.sleep(0.3)
    session.close()
    until = time.monotonic() + 5
    while not gone.exists() and time.monotonic() < until:
        time.sleep(0.02)
    assert gone.exists()


def test_a_session_that_breaks_reports_it(server: Sshd, tmp_path: Path) -> None:
    relay = Relay(server.port)
    with listener(relay) as port:
        path = config(tmp_path, server, f"Host *\nHostKeyAlias [127.0.0.1]:{server.port}")
        transport = SshTransport([Host("box", "127.0.0.1", port=port)], SshSettings(config_file=path))
        session = transport.open({"box": Script("cat", b"hello\n", b"")})
        assert session.receive(10) == Line("box", b"hello")
        relay.cut()
        assert why_ended(session, 5) is UnreachedKind.LOST
        transport.close()


def test_a_session_with_an_unreachable_host(tmp_path: Path) -> None:
    transport = SshTransport([Host("box", "127.0.0.1", port=1)], SshSettings(config_file=config(tmp_path)))
    assert why_ended(transport.open({"box": Script("cat", b"", b"")})) is UnreachedKind.REFUSED
    transport.close()


def test_output_that_is_not_read_waits_on_the_host_instead_of_filling_memory(transport: SshTransport) -> None:
    session = transport.open(
        {"box": Script("yes 0123456789012345678901234567890123456789 | head -c 28700000", b"", b"")}
    )
    time.sleep(1)
    heard = 0
    while isinstance(news := session.receive(10), Line):
        heard += len(news.text) + 1
    assert heard == 28_700_000
    assert news == SessionEnd("box", 0, b"")
    session.close()


def test_closing_is_quick_at_any_time(server: Sshd, settings: SshSettings) -> None:
    hosts = [server.host(f"box{n}") for n in range(24)]
    transport = SshTransport(hosts, settings)
    session = transport.open({h.name: Script("cat", b"", b"") for h in hosts[:12]})
    running = transport.run({h.name: sh("sleep 60") for h in hosts[12:]}, 60)
    waiter = threading.Thread(target=list, args=(running,))
    waiter.start()
    time.sleep(0.5)
    begun = time.monotonic()
    transport.close()
    transport.close()
    took = time.monotonic() - begun
    waiter.join(30)
    assert not waiter.is_alive()
    assert took < 30
    ends = [session.receive(2) for _ in range(12)]
    assert all(isinstance(end, SessionEnd) for end in ends)


def test_abandoning_a_run_drops_the_rest(server: Sshd, settings: SshSettings, tmp_path: Path) -> None:
    transport = SshTransport([server.host("box"), server.host("bax")], settings)
    stopped = tmp_path / "stopped"
    watching = Script(f"cat; touch {stopped}", b"", DONE)
    results = transport.run({"box": sh("sleep 0.5"), "bax": watching}, 30)
    assert isinstance(next(results), Answer)
    assert isinstance(results, Generator)
    results.close()
    until = time.monotonic() + 5
    while not stopped.exists() and time.monotonic() < until:
        time.sleep(0.02)
    assert stopped.exists()
    [again] = transport.run({"bax": sh("echo hi")}, 15)
    assert isinstance(again, Answer)
    transport.close()


@cases
def test_the_message_of_a_restricted_account_is_the_answer(tmp_path: Path, restriction: str) -> None:
    with sshd(tmp_path / "sshd", authorized=restriction) as narrow:
        got = answer(narrow.host(), SshSettings(config_file=config(tmp_path, narrow)), timeout=3)
    assert DONE not in got.stdout


def test_no_session_at_all(tmp_path: Path) -> None:
    with sshd(tmp_path / "sshd", "MaxSessions 0") as closed:
        why = failure(closed.host(), SshSettings(config_file=config(tmp_path, closed)))
    assert why.kind is UnreachedKind.NO_SHELL


def test_fanout_limits_starts_but_not_connections(server: Sshd, settings: SshSettings) -> None:
    hosts = [server.host(f"box{n}") for n in range(6)]
    narrow = SshSettings(config_file=settings.config_file, fanout=1)
    got = outcomes(hosts, narrow, {h.name: sh("sleep 1") for h in hosts}, timeout=20)
    assert all(isinstance(a, Answer) for a in got.values())
    starts = [a.started for a in got.values() if isinstance(a, Answer)]
    assert max(starts) - min(starts) < 5, "they must have run side by side"


def test_a_hosts_own_time_does_not_begin_while_it_waits_for_its_turn(
    server: Sshd, settings: SshSettings
) -> None:
    narrow = SshSettings(config_file=settings.config_file, fanout=1)
    hosts = [server.host(f"box{n}") for n in range(8)]
    got = outcomes(hosts, narrow, timeout=3)
    assert not [u for u in got.values() if isinstance(u, UnreachedHost)]


INTERRUPTED = from_cases(__file__, "INTERRUPTED", str)


def test_an_interrupt_is_handled_at_once(server: Sshd, tmp_path: Path) -> None:
    with listener(lambda _: time.sleep(10)) as mute:
        command = [sys.executable, "-c", INTERRUPTED, config(tmp_path, server), str(server.port), str(mute)]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT)
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        time.sleep(0.7)
        begun = time.monotonic()
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=30)
    assert (out, err, child.returncode) == (b"closed True\n", b"", 0)
    assert time.monotonic() - begun < 30


def test_a_host_costs_little_cpu_time(server: Sshd, settings: SshSettings) -> None:
    hosts = [server.host(f"box{n}") for n in range(32)]
    outcomes(hosts[:1], settings)
    begun = time.process_time()
    got = outcomes(hosts, settings)
    spent = (time.process_time() - begun) / len(hosts)
    assert [type(a) for a in got.values()] == [Answer] * 32
    assert spent < 0.015 * slowness()


def test_the_trace_ends_with_the_step_that_stalls(tmp_path: Path) -> None:
    with listener(lambda _: time.sleep(10)) as mute:
        way = ("--transport", "ssh", "--port", str(mute), "--connect-timeout", "0.5")
        run = doctor("facts", "127.0.0.1", *way, "--trace", cwd=tmp_path)
    steps = [line.partition(" s  ")[2] for line in run.stderr.splitlines()]
    dialled = f"127.0.0.1: 127.0.0.1 is looked up, and port {mute} dialled"
    assert steps[:3] == ["hosts: 0/1 answered", dialled, "127.0.0.1: its SSH server greets"]
    assert steps[3].startswith("127.0.0.1: ")
    assert len(steps) == 4
