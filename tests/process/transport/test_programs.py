"""Scripts and sessions are alike over our own SSH, by the system's `ssh`, and on this machine."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from doctor.model import Answer, AnswerEnd, UnreachedKind
from doctor.transport import Line, Script, SessionEnd, Transport
from doctor.transport.local import LocalTransport
from doctor.transport.openssh import OpensshTransport
from doctor.transport.program import OUTPUT_CAP
from doctor.transport.ssh.settings import SshSettings
from doctor.transport.ssh.transport import SshTransport
from tests.support.transport_servers import DONE, SSHD, Sshd, config, sh, why_ended

pytestmark = pytest.mark.skipif(not SSHD.exists(), reason="needs an SSH server to talk to")
TEXT = b"x" * 99 + b"\n"


@pytest.fixture(params=[SshTransport, OpensshTransport, LocalTransport])
def transport(request: pytest.FixtureRequest, server: Sshd, tmp_path: Path) -> Iterator[Transport]:
    """A way to the hosts `box` and `bax`."""
    hosts = [server.host("box"), server.host("bax")]
    given = (hosts, SshSettings(config_file=config(tmp_path, server)))
    made = LocalTransport() if request.param is LocalTransport else request.param(*given)
    yield made
    made.close()


def one(transport: Transport, script: Script, timeout: float = 15) -> Answer:
    [got] = transport.run({"box": script}, timeout)
    assert isinstance(got, Answer), got
    return got


def test_a_script_is_answered_with_both_streams_and_times(transport: Transport) -> None:
    before = time.time()
    got = one(transport, sh("echo out; echo err >&2"))
    assert (got.stdout, got.stderr, got.rc, got.end) == (b"out\nDONE\n", b"err\n", 0, AnswerEnd.DONE)
    assert before <= got.started <= got.ended <= time.time()


def test_a_command_that_ends_without_its_last_line_is_done_with_its_status(transport: Transport) -> None:
    got = one(transport, Script("echo some; exit 7", b"ignored", DONE))
    assert (got.stdout, got.rc, got.end) == (b"some\n", 7, AnswerEnd.DONE)


def test_the_last_line_must_be_a_whole_line(transport: Transport) -> None:
    got = one(transport, sh("echo xDONE; echo DONEx; printf DO; sleep 0.2; echo NE; echo more"))
    assert got.stdout == b"xDONE\nDONEx\nDONE\n"


def test_the_deadline_keeps_what_was_printed(transport: Transport) -> None:
    begun = time.monotonic()
    got = one(transport, sh("echo first; sleep 60"), timeout=2.5)
    assert (got.stdout, got.end) == (b"first\n", AnswerEnd.TIMEOUT)
    assert time.monotonic() - begun < 30


@pytest.mark.parametrize("where", ["", ">&2"])
def test_a_flooding_shell_is_stopped_at_the_cap(transport: Transport, where: str) -> None:
    got = one(transport, Script(f"yes {where}", b"", DONE))
    assert got.end is AnswerEnd.FLOOD
    assert max(len(got.stdout), len(got.stderr)) == OUTPUT_CAP


def test_a_large_stdin_and_a_talkative_reader_do_not_block_each_other(transport: Transport) -> None:
    got = one(transport, Script("cat", TEXT * 60_000 + DONE + b"\n", DONE))
    assert got.end is AnswerEnd.DONE
    assert got.stdout == TEXT * 60_000 + DONE + b"\n"


def test_lines_go_both_ways(transport: Transport) -> None:
    loop = 'while read -r line; do echo "$0 $line"; done; echo bye; echo last >&2; exit 3'
    session = transport.open({h: Script(f"exec sh -c '{loop}' {h}", b"zero\n", b"") for h in ("box", "bax")})
    session.send("box", b"one")
    session.send("bax", b"two")
    session.send("nobody", b"three")
    heard = {session.receive(10) for _ in range(4)}
    assert heard == {
        Line("box", b"box zero"),
        Line("box", b"box one"),
        Line("bax", b"bax zero"),
        Line("bax", b"bax two"),
    }
    assert session.receive(0.05) is None
    session.close()


def test_the_end_of_a_program_carries_its_status_and_stderr(transport: Transport) -> None:
    session = transport.open({"box": Script("echo no newline | tr -d '\\n'; echo why >&2; exit 3", b"", b"")})
    assert session.receive(10) == Line("box", b"no newline")
    assert session.receive(10) == SessionEnd("box", 3, b"why\n")
    session.close()


def test_an_endless_line_ends_the_session(transport: Transport) -> None:
    session = transport.open({"box": Script("head -c 3000000 /dev/zero; sleep 20", b"", b"")})
    assert why_ended(session) is UnreachedKind.FLOOD
    session.close()
