"""Why a host could not be asked, in sentences: one function for each kind of failure; its words: reasons.txt.

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
from doctor.text.hostprogram import table
from doctor.text.redact import redact

NO_WAY_THERE = {
    *(errno.ENETUNREACH, errno.EHOSTUNREACH, errno.EHOSTDOWN, errno.ENETDOWN, errno.EADDRNOTAVAIL),
    *(errno.EINVAL, errno.ENODEV),
    # Routes of type "prohibit", and this machine's own firewall.
    *(errno.EACCES, errno.EPERM),
}
REASONS = {name: lines for name, *lines in table(__file__, "reasons.txt")}
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
        return f"{shlex.join(words)} {shlex.quote(f'{self.user}@{self.name}'.lstrip('@'))} true"


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


def cannot(name: str, detail: str = "", to: Destination | None = None, **values: object) -> CannotReach:
    """The failure of this name in reasons.txt, with its values; {words} are the detail if none are given."""
    values = {"words": detail} | values
    if to is not None:
        of_it = {"address": shlex.quote(to.address), "port": to.port, "user": to.user}
        values = of_it | {"ssh": to.ssh("-v"), "knock": knock(to)} | values
    kind, summary, remedy, *commands = (line.format(**values) for line in REASONS[name])
    return CannotReach(UnreachedKind[kind], summary, remedy, commands, detail)


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
    return None if what is None else cannot("out of", quoted(str(error)), what=what)


def _no_descriptors() -> CannotReach | None:
    """The failure if no file can be opened: code that reads names or keys then rarely reports the reason."""
    try:
        for end in os.pipe():
            os.close(end)
    except OSError as error:
        return shortage(error)
    return None


def name_not_found(to: Destination, error: OSError) -> CannotReach:
    temporary = isinstance(error, socket.gaierror) and error.errno == socket.EAI_AGAIN
    how = "the name servers did not answer" if temporary else "no such name"
    where = "looked up in /etc/hosts and DNS of this machine"
    return cannot("no name", quoted(str(error)), to, how=how, where=where)


def not_connected(to: Destination, error: OSError, seconds: float) -> CannotReach:
    """TCP failed. If a name has several addresses, `error` is that of the last one."""
    if (short := shortage(error)) is not None:
        return short
    detail, place = quoted(str(error)), f"port {to.port}"
    if isinstance(error, socket.gaierror):
        return name_not_found(to, error)
    if isinstance(error, TimeoutError):
        return cannot("no answer", detail, to, place=place, seconds=rounded(seconds))
    if isinstance(error, ConnectionRefusedError):
        return cannot("refused", detail, to, place=place)
    if error.errno in NO_WAY_THERE:
        return cannot("no route", detail, to, words=os.strerror(error.errno or 0))
    return cannot("not connected", detail, to, place=place)


def no_banner(to: Destination, seconds: float, said: bytes) -> CannotReach:
    if said:
        what = f"Port {to.port} is not an SSH server: it says “{quoted(said, 60)}”."
    else:
        what = f"Port {to.port} accepts connections, but no SSH banner came within {rounded(seconds)} s."
    return cannot("no banner", "", to, what=what)


def knock(to: Destination) -> str:
    """A command that connects and hangs up; it needs only programs that every host has."""
    place = shlex.quote(f"</dev/tcp/{to.address}/{to.port}")
    return f"timeout 3 bash -c {place} && echo open"


def closed_at_once(to: Destination, tries: int, said: bytes) -> CannotReach:
    words = f", saying “{quoted(said, 60)}”" if said else ""
    return cannot("closed at once", quoted(said), to, words=words, tries=tries)


def handshake_slow(to: Destination, seconds: float, what: str) -> CannotReach:
    return cannot("slow handshake", "", to, what=what, seconds=rounded(seconds))


def lost(to: Destination, what: str, words: str = "") -> CannotReach:
    return cannot("lost", quoted(words), to, what=what, said=f": {quoted(words)}" if words else "")


def too_slow(seconds: float, doing: str) -> CannotReach:
    return cannot("too slow", seconds=rounded(seconds), doing=doing)


def not_started(error: OSError) -> CannotReach:
    return shortage(error) or cannot("no shell", words=quoted(error.strerror or str(error)))


def explained(error: Exception) -> CannotReach:
    """Why a host could not be asked, or that this machine cannot ask any."""
    if (own := shortage(error) or _no_descriptors()) is not None:
        return own
    if isinstance(error, CannotReach):
        return error
    kind = type(error).__name__
    return cannot("broken tool", quoted(f"{kind}: {error}", 400), words=kind)
