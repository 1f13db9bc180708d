"""Hosts that could not be asked: who is to blame for that, and who is not."""

import socket
from collections.abc import Mapping
from dataclasses import replace

import pytest

from doctor.judge.verdict import Report
from doctor.model import Finding, HostStatus, Status, UnreachedHost
from doctor.text.nodeset import quoted
from doctor.transport import errors
from doctor.transport.errors import CannotReach
from doctor.transport.ssh.errors import PresentedKey, key_changed, key_unknown
from tests.support.cases import cases
from tests.support.recordings import heard, recording, report

NAMES = ["node1", "node2", "node3", "node4"]
NO_TURN, CUT = errors.cannot("no turn"), errors.cannot("cut off", "No answer from port 22.")
SHORT = errors.explained(OSError(24, "Too many open files"))
PAUSED = errors.cannot("paused", "No answer from port 22.", seconds="25")
REFUSED = errors.not_connected(
    errors.Destination("node", "node", 22, "root"), ConnectionRefusedError(111, "Connection refused"), 10
)


def judged(**why: CannotReach) -> Report:
    unreached: Mapping[str, UnreachedHost] = {host: reason.of(host) for host, reason in why.items()}
    answered = {name: heard(n, NAMES) for n, name in enumerate(NAMES, 1) if name not in why}
    return report(recording(NAMES, heard=answered, unreached=unreached))


def of_reach(found: Report) -> list[Finding]:
    return [finding for finding in found.findings if finding.check == "host-unreachable"]


def blamed(found: Report) -> set[str]:
    return {host for finding in found.findings if finding.status is Status.FAIL for host in finding.hosts}


@pytest.mark.parametrize("why", [NO_TURN, CUT, SHORT, PAUSED])
def test_what_is_not_the_fault_of_a_host_is_held_against_none(why: CannotReach) -> None:
    found = judged(node2=why, node4=why)
    assert found.exit_code == 3
    assert blamed(found) == set()
    status = {host.name: (host.status, host.reason) for host in found.hosts}
    assert status["node4"] == (HostStatus.UNEXAMINED, why.summary)
    assert status["node1"][0] is HostStatus.HEALTHY
    assert [f.hosts for f in of_reach(found) if f.status is Status.UNKNOWN] == [("node2", "node4")]


@pytest.mark.parametrize("why", [SHORT, PAUSED])
def test_this_machine_is_a_finding_of_its_own(why: CannotReach) -> None:
    (own,) = [each for each in of_reach(judged(node2=why, node4=why)) if each.status is Status.WARN]
    assert (own.hosts, own.where, own.summary) == ((), (), why.summary)
    assert "this machine" in own.summary.lower()


def test_a_host_that_is_down_is_named_beside_them() -> None:
    found = judged(node2=NO_TURN, node3=REFUSED, node4=SHORT)
    assert found.exit_code == 1
    assert blamed(found) == {"node3"}
    (unknown,) = [each for each in of_reach(found) if each.status is Status.UNKNOWN]
    assert set(unknown.hosts) == {"node2", "node4"}
    assert "node2: Its turn had not come" in unknown.summary
    assert "node4: This machine ran out of file descriptors." in unknown.summary


def unresolved(*, temporary: bool) -> CannotReach:
    number = socket.EAI_AGAIN if temporary else socket.EAI_NONAME
    to = errors.Destination("node", "node", 22, "root")
    return errors.name_not_found(to, socket.gaierror(number, "not resolved"))


@pytest.mark.parametrize("temporary", [False, True], ids=["unknown", "name-server-silent"])
@cases
def test_a_name_unlike_the_others_is_a_slip(
    typed: str, beside: tuple[str, ...], meant: str, temporary: bool
) -> None:
    answers = {name: heard(n, beside) for n, name in enumerate(beside, 1)}
    why = {typed: unresolved(temporary=temporary).of(typed)}
    (found,) = of_reach(report(recording([*beside, typed], heard=answers, unreached=why)))
    assert (found.hosts, found.summary) == ((typed,), f"No such name. Did you mean {meant}?")


@cases
def test_a_name_that_is_only_absent_is_no_slip(typed: str, beside: tuple[str, ...]) -> None:
    answers = {name: heard(n, beside) for n, name in enumerate(beside, 1)}
    why = {typed: unresolved(temporary=True).of(typed)}
    (found,) = of_reach(report(recording([*beside, typed], heard=answers, unreached=why)))
    assert "Did you mean" not in found.summary
    assert "the name servers did not answer" in found.summary


def test_names_that_fail_together_explain_no_slip() -> None:
    """If no name could be resolved, the names show nothing about each other."""
    why = {name: unresolved(temporary=True).of(name) for name in ("node1", "nodd2")}
    found = of_reach(report(recording(["node1", "nodd2"], heard={}, unreached=why)))
    assert not [each for each in found if "Did you mean" in each.summary]


def test_a_run_that_was_over_for_all_names_no_common_cause() -> None:
    found = judged(**dict.fromkeys(NAMES, NO_TURN))
    assert (found.exit_code, blamed(found)) == (3, set())
    assert [each.status for each in of_reach(found)] == [Status.UNKNOWN]


@pytest.mark.parametrize(
    ("error", "what"),
    [
        (MemoryError(), "memory"),
        (OSError(12, "Cannot allocate memory"), "memory"),
        (RuntimeError("can't start new thread"), "threads"),
        (OSError(23, "Too many open files in system"), "file descriptors"),
        (BlockingIOError(11, "Resource temporarily unavailable"), "processes"),
    ],
)
def test_what_this_machine_can_be_short_of(error: Exception, what: str) -> None:
    assert errors.explained(error).summary == f"This machine ran out of {what}."


def test_a_mistake_of_ours_is_no_shortage() -> None:
    assert "itself failed" in errors.explained(ValueError("bug")).summary
    assert errors.explained(REFUSED) is REFUSED


def fingerprint(host: str) -> str:
    return "SHA256:" + (host * 43)[:43]


def unknown_key(host: str) -> CannotReach:
    shown = PresentedKey("ssh-ed25519", fingerprint(host), f"[{host}.lan]:2222")
    to = errors.Destination(host, host, 2222, "root")
    return key_unknown(to, shown, "/root/.ssh/known_hosts", False, [])


@pytest.mark.parametrize("count", [1, 2, 4])
def test_first_contact_shows_the_fingerprints_and_what_trusts_them(count: int) -> None:
    """For one host, for some, and for all, which is a common cause."""
    hosts = NAMES[:count]
    (found,) = of_reach(judged(**{host: unknown_key(host) for host in hosts}))
    assert found.remedy is not None
    *words, ready = found.remedy.commands
    assert ready == f"doctor check {quoted(hosts)} --accept-new"
    assert all(word.startswith("#") for word in words)
    for host in hosts:
        assert f"#   {host}  ssh-ed25519 {fingerprint(host)}" in words
        assert f"{host}: ssh-ed25519 {fingerprint(host)}" in [each.text for each in found.evidence]


def test_a_changed_key_is_never_suggested_to_be_accepted() -> None:
    to = errors.Destination("node2", "node2", 22, "root")
    shown = PresentedKey("ssh-ed25519", fingerprint("node2"), "node2")
    changed = key_changed(to, shown, "ssh-rsa SHA256:old", "/root/.ssh/known_hosts", 3, True)
    found = of_reach(judged(node2=changed, node3=unknown_key("node3")))
    commands = {each.hosts: each.remedy.commands for each in found if each.remedy}
    assert not any("accept-new" in line for line in commands["node2",])
    assert commands["node3",][-1] == "doctor check node3 --accept-new"


def test_many_fingerprints_do_not_fill_the_screen() -> None:
    names = [f"node{n}" for n in range(1, 41)]
    lost = {name: unknown_key(name).of(name) for name in names}
    (found,) = of_reach(report(recording(names, heard={}, unreached=lost)))
    assert found.remedy is not None
    assert len(found.remedy.commands) < 24
    assert "#   and 24 more: -v shows them" in found.remedy.commands


def test_what_is_no_fingerprint_is_neither_shown_nor_trusted() -> None:
    odd = replace(unknown_key("node2"), detail="node2 ssh-ed25519 $(evil)\nevil")
    (found,) = of_reach(judged(node2=odd))
    assert found.remedy is not None
    assert not any("accept-new" in line for line in found.remedy.commands[1:])
    assert "evil" not in str(found.remedy)
