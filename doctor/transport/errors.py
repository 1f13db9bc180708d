"""Why a host could not be asked, in sentences: one function for each kind of failure.

Summaries leave out the host's own name, so that the same fault of many hosts folds into one line; commands
name it. What a peer said is only quoted through `quoted`, which keeps it short and printable. No secret gets
here.
"""

import errno
import os
import shlex
import socket
from collections.abc import Sequence
from dataclasses import dataclass

from doctor.model import UnreachedHost, UnreachedKind
from doctor.text.redact import redact

NO_WAY_THERE = frozenset(
    {
        errno.ENETUNREACH,
        errno.EHOSTUNREACH,
        errno.EHOSTDOWN,
        errno.ENETDOWN,
        errno.EADDRNOTAVAIL,
        errno.EINVAL,
        errno.ENODEV,
        # Routes of type "prohibit", and this machine's own firewall.
        errno.EACCES,
        errno.EPERM,
    }
)


MOST_SAID = 4000
"""How many characters of a peer's message are read."""

SHORT_OF = {
    errno.EMFILE: "file descriptors",
    errno.ENFILE: "file descriptors",
    errno.ENOMEM: "memory",
    errno.ENOBUFS: "memory",
    errno.EAGAIN: "processes",
}


@dataclass(frozen=True, slots=True)
class Destination:
    """The host to be dialled, for sentences and commands. `options` are ready for an ssh command line."""

    name: str
    address: str
    port: int
    user: str
    options: tuple[str, ...] = ()

    def ssh(self, *more: str) -> str:
        words = ["ssh", *self.options, *more]
        return f"{shlex.join(words)} {shlex.quote(f'{self.user}@{self.name}')} true"


@dataclass(eq=False)
class CannotReach(Exception):
    """One destination cannot be asked. Becomes an `UnreachedHost` for every host behind it."""

    kind: UnreachedKind
    summary: str
    remedy: str
    commands: Sequence[str] = ()
    detail: str = ""
    by_ssh: Sequence[str] = ()
    """Keywords of ssh_config, and of known_hosts, by which `ssh` itself may get there."""

    def of(self, host: str) -> UnreachedHost:
        return UnreachedHost(host, self.kind, self.summary, self.remedy, tuple(self.commands), self.detail)


def quoted(text: bytes | str, limit: int = 120) -> str:
    """What a peer said, as one short printable line without anything that looks like a secret."""
    words = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    line = " ".join(redact(words[:MOST_SAID]).split())
    clean = "".join(letter if letter.isprintable() else "?" for letter in line)
    return clean if len(clean) <= limit else clean[: limit - 1] + "…"


def rounded(seconds: float) -> str:
    """Equal for hosts whose time ran out a moment apart."""
    return f"{round(seconds) if seconds >= 2 else round(seconds, 1):g}"


def shortage(error: BaseException | None) -> CannotReach | None:
    """The failure if this machine ran out of memory, threads or descriptors: then no host is to blame."""
    what = None
    if isinstance(error, MemoryError):
        what = "memory"
    elif isinstance(error, RuntimeError) and "start new thread" in str(error):
        what = "threads"
    elif isinstance(error, OSError):
        what = SHORT_OF.get(error.errno or 0)
    return None if what is None else _short_of(what, str(error))


def _short_of(what: str, words: str) -> CannotReach:
    return CannotReach(
        UnreachedKind.CONTROLLER,
        f"This machine ran out of {what}.",
        "Raise its limits (ulimit -n, -u, -v), or ask fewer hosts in one run.",
        ["ulimit -a"],
        quoted(words),
    )


def too_few_descriptors(limit: int) -> CannotReach:
    return CannotReach(
        UnreachedKind.CONTROLLER,
        f"This machine opens at most {limit} files, too few for connections to all hosts at once.",
        "Raise its limit (ulimit -n), or ask fewer hosts in one run.",
        ["ulimit -a"],
    )


def _no_descriptors() -> CannotReach | None:
    """The failure if no file can be opened: code that reads names or keys then rarely reports the reason."""
    try:
        for end in os.pipe():
            os.close(end)
    except OSError as error:
        return shortage(error)
    return None


def paused(seconds: float, failed: str) -> CannotReach:
    return CannotReach(
        UnreachedKind.CONTROLLER,
        f"This machine, or the run on it, was stopped for {rounded(seconds)} s meanwhile.",
        "Run it again.",
        detail=quoted(failed),
    )


def name_not_found(to: Destination, error: OSError) -> CannotReach:
    temporary = isinstance(error, socket.gaierror) and error.errno == socket.EAI_AGAIN
    how = "the name servers did not answer" if temporary else "no such name"
    where = "looked up in /etc/hosts and DNS of this machine"
    return CannotReach(
        UnreachedKind.NAME,
        f"The name cannot be resolved: {how} ({where}).",
        "Correct the name, or give its address in /etc/hosts, in DNS, or as HostName in ~/.ssh/config.",
        [f"getent ahosts {shlex.quote(to.address)}", "cat /etc/hosts"],
        quoted(str(error)),
    )


def not_connected(to: Destination, error: OSError, seconds: float) -> CannotReach:
    """TCP failed. If a name has several addresses, `error` is that of the last one."""
    if (short := shortage(error)) is not None:
        return short
    detail = quoted(str(error))
    place = f"port {to.port}"
    look = knock(to)
    if isinstance(error, socket.gaierror):
        return name_not_found(to, error)
    if isinstance(error, TimeoutError):
        return CannotReach(
            UnreachedKind.TIMEOUT,
            f"No answer from {place} within {rounded(seconds)} s: the host is down, or packets are dropped.",
            "Check that the host is powered on and that no firewall stands between; "
            "--connect-timeout waits longer.",
            [f"ping -c 3 {shlex.quote(to.address)}", look],
            detail,
        )
    if isinstance(error, ConnectionRefusedError):
        return CannotReach(
            UnreachedKind.REFUSED,
            f"Connection refused: the host answers, but nothing listens on {place}.",
            "Start the SSH server on the host, or give the port that it listens on (--port, or Port in "
            "~/.ssh/config).",
            [look, "systemctl status ssh sshd   # on the host itself"],
            detail,
        )
    if error.errno in NO_WAY_THERE:
        words = os.strerror(error.errno or 0)
        return CannotReach(
            UnreachedKind.NO_ROUTE,
            f"{words}: the host is off, or no route of this machine leads there.",
            "Check the address, the routes of this machine, and that the host is on the network.",
            [f"ip route get {shlex.quote(to.address)}", "ip neigh show"],
            detail,
        )
    return CannotReach(
        UnreachedKind.OTHER,
        f"Cannot connect to {place}: {quoted(str(error))}.",
        "Try the same connection by hand.",
        [to.ssh("-v")],
        detail,
    )


def no_banner(to: Destination, seconds: float, said: bytes) -> CannotReach:
    if said:
        what = f"Port {to.port} is not an SSH server: it says “{quoted(said, 60)}”."
    else:
        what = f"Port {to.port} accepts connections, but no SSH banner came within {rounded(seconds)} s."
    return CannotReach(
        UnreachedKind.BANNER,
        what,
        "Check that the port is the SSH server's, and that the host is not out of memory or processes.",
        [to.ssh("-v")],
    )


def knock(to: Destination) -> str:
    """A command that connects and hangs up; it needs only programs that every host has."""
    place = shlex.quote(f"</dev/tcp/{to.address}/{to.port}")
    return f"timeout 3 bash -c {place} && echo open"


def closed_at_once(to: Destination, tries: int, said: bytes) -> CannotReach:
    words = f", saying “{quoted(said, 60)}”" if said else ""
    return CannotReach(
        UnreachedKind.BANNER,
        f"The SSH server on port {to.port} closed the connection before its banner{words}, {tries} times.",
        "It may have too many logins at once (MaxStartups, PerSourceMaxStartups, PerSourcePenalties) or "
        "block this address (hosts.deny, fail2ban). Look at its log, or try a smaller --fanout.",
        [to.ssh("-v"), "journalctl -u ssh -u sshd -n 50   # on the host itself"],
        quoted(said),
    )


def not_ssh(to: Destination, words: str) -> CannotReach:
    return CannotReach(
        UnreachedKind.OTHER,
        f"The SSH handshake failed: {quoted(words)}.",
        "Compare with OpenSSH's own client, which shows what the server offers.",
        [to.ssh("-v")],
        quoted(words),
    )


def handshake_slow(to: Destination, seconds: float, what: str) -> CannotReach:
    return CannotReach(
        UnreachedKind.TIMEOUT,
        f"The SSH server did not finish {what} within {rounded(seconds)} s.",
        "The host may be overloaded, out of memory, or waiting for a slow name or account service (DNS, "
        "LDAP, PAM); --timeout waits longer.",
        [to.ssh("-v")],
    )


def lost(to: Destination, what: str, words: str = "") -> CannotReach:
    said = f": {quoted(words)}" if words else ""
    return CannotReach(
        UnreachedKind.LOST,
        f"The connection broke during {what}{said}.",
        "Try again; if it happens each time, look at the SSH server's log.",
        [to.ssh("-v"), "journalctl -u ssh -u sshd -n 50   # on the host itself"],
        quoted(words),
    )


def too_slow(seconds: float, doing: str) -> CannotReach:
    return CannotReach(
        UnreachedKind.TIMEOUT,
        f"The host's {rounded(seconds)} s were over while {doing}.",
        "Try it by hand; --timeout gives each host more time.",
    )


def no_turn() -> CannotReach:
    return CannotReach(
        UnreachedKind.DEADLINE,
        "Its turn had not come when the time for the whole run was over.",
        "Give the run more time (--deadline), or ask more hosts at once (--fanout).",
    )


def cut_off(failed: str) -> CannotReach:
    return CannotReach(
        UnreachedKind.DEADLINE,
        "The time for the whole run was over before it had answered.",
        "Give the run more time (--deadline).",
        detail=quoted(failed),
    )


def no_session(to: Destination, words: str) -> CannotReach:
    said = f" ({quoted(words)})" if words else ""
    return CannotReach(
        UnreachedKind.NO_SHELL,
        f"Logged in as {to.user}, but the server does not open a session{said}.",
        "The server may allow none (MaxSessions 0, no-session keys) or be out of processes.",
        [to.ssh("-v")],
        quoted(words),
    )


def no_command(to: Destination) -> CannotReach:
    return CannotReach(
        UnreachedKind.NO_SHELL,
        f"Logged in as {to.user}, but the server refuses to run a command.",
        "Use an account with a shell, or lift ForceCommand in sshd_config or command= and restrict in "
        "authorized_keys.",
        [to.ssh("-v")],
    )


def not_started(error: OSError) -> CannotReach:
    return shortage(error) or CannotReach(
        UnreachedKind.NO_SHELL,
        f"This machine cannot start a shell: {quoted(error.strerror or str(error))}.",
        "Check /bin/sh and the limits of this account.",
        ["ls -l /bin/sh", "ulimit -a"],
    )


def interrupted() -> CannotReach:
    return CannotReach(UnreachedKind.OTHER, "Stopped before the host was asked.", "Run it again.")


def explained(error: Exception) -> CannotReach:
    """Why a host could not be asked, or that this machine cannot ask any."""
    own = shortage(error) or _no_descriptors()
    return own or (error if isinstance(error, CannotReach) else broken_tool(error))


def broken_tool(error: BaseException) -> CannotReach:
    return CannotReach(
        UnreachedKind.OTHER,
        f"cluster-doctor itself failed on this host: {type(error).__name__}.",
        "Please report this, with the detail.",
        (),
        quoted(f"{type(error).__name__}: {error}", 400),
    )
