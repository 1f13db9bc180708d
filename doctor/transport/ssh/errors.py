"""Why SSH does not reach a host, as sentences: host keys, logins, jump hosts and ProxyCommand."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace

from doctor.model import UnreachedKind
from doctor.transport.errors import CannotReach, Destination, cannot, knock, quoted, rounded


@dataclass(frozen=True, slots=True)
class PresentedKey:
    """The key that a host showed, and the name of that host in `known_hosts`."""

    kind: str
    fingerprint: str
    known_as: str

    def __str__(self) -> str:
        return f"{self.known_as} {self.kind} {self.fingerprint}"


def ssh_refused(to: Destination, kind: UnreachedKind, said: str) -> CannotReach:
    """`ssh` itself does not get there."""
    return cannot("ssh does not log in", quoted(said), to, kind=kind.name)


def login_refused(
    to: Destination,
    offered: Sequence[str],
    unusable: Sequence[str],
    allowed: Sequence[str],
    server: str,
    locked: Sequence[str],
    others: Sequence[str],
) -> CannotReach:
    """`offered` and `unusable` name keys by their files; `locked` are those that need a passphrase; `others`
    are keywords of ssh_config by which only `ssh` logs in.
    """
    keys = f"offered {', '.join(offered)}" if offered else "there was no key to offer"
    left_out = f"; not usable: {', '.join(unusable)}" if unusable else ""
    methods = f"; the server allows {_few(allowed)}" if allowed else ""
    tail = f" ({quoted(server)})" if server else ""
    if locked:
        name = "key with a passphrase refused"
    elif "too many" in server.lower():
        name = "too many keys refused"
    elif allowed and "publickey" not in allowed:
        name = "no keys allowed"
    else:
        name = "key refused" if offered else "no key"
    values = {"account": shlex.quote(f"{to.user}@{to.name}"), "locked": shlex.join(locked)}
    values["only"] = _only_ssh(others, "give it a key, or make ssh log in first (kinit, or ssh-add -s)")
    return replace(cannot(name, "", to, said=f"{keys}{left_out}{methods}{tail}", **values), by_ssh=others)


def _only_ssh(keywords: Sequence[str], instead: str) -> str:
    names = ", ".join(keywords)
    return f"Doctor's own SSH does not have {names} of ssh_config: {instead}. " if keywords else ""


def _few(methods: Sequence[str]) -> str:
    return ", ".join(quoted(method, 40) for method in methods[:8])


def second_factor(to: Destination, key: str, allowed: Sequence[str], others: Sequence[str]) -> CannotReach:
    only = _only_ssh(others, "a login that is already open there does not count")
    return replace(cannot("second factor", "", to, key=key, wants=_few(allowed), only=only), by_ssh=others)


def key_unknown(
    to: Destination, key: PresentedKey, known_hosts: str, only_authority: bool, others: Sequence[str]
) -> CannotReach:
    at = f"{f'-p {to.port} ' if to.port != 22 else ''}{shlex.quote(to.address)}"
    values = {"at": at, "file": shlex.quote(known_hosts), "login": to.ssh()}
    values["only"] = _only_ssh(others, "the key must be in a file of known hosts")
    why = cannot("only an authority known" if only_authority else "key unknown", str(key), to, **values)
    by_ssh = [*others, *(["@cert-authority"] if only_authority else [])]
    return replace(why, commands=why.commands[1 if others else 0 :], by_ssh=by_ssh)


def key_changed(
    to: Destination, key: PresentedKey, old: str, file: str, line: int, default: bool
) -> CannotReach:
    told = {"kind": key.kind, "fingerprint": key.fingerprint, "file": file, "line": line, "old": old}
    where, name = "" if default else f"-f {shlex.quote(file)} ", shlex.quote(key.known_as)
    return cannot("key changed", str(key), to, where=where, known_as=name, login=to.ssh(), **told)


def tunnel_refused(to: Destination, jump: str, code: int, words: str, seconds: float) -> CannotReach:
    """The jump host is fine, but did not connect us to the next host. Its own words say why."""
    low, said, there = words.lower(), quoted(words), shlex.quote(jump)
    if code == 1:
        return cannot("not forwarded", said, jump=jump, there=there, words=said or "prohibited")
    if "name" in low or "resol" in low or "not known" in low:
        name = "no name"
    elif "refused" in low:
        name = "refused"
    elif "route" in low or "unreachable" in low:
        name = "no route"
    else:
        name = "no answer" if "timed out" in low or not words else "not connected"
    values = {"words": said, "seconds": rounded(seconds), "there": there}
    seen, look = f" (seen from the jump host {jump})", f"ssh {there} {shlex.quote(knock(to))}"
    return cannot(f"{name} behind a jump host", said, to, seen=seen, look=look, **values)


def jump_failed(jump: str, why: CannotReach) -> CannotReach:
    """Equal for every target behind the jump host, so that they fold into one finding."""
    summary = f"The jump host {jump} cannot be used: {why.summary}"
    return replace(why, kind=UnreachedKind.JUMP, summary=summary)
