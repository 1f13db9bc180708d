"""Hosts that a mesh leaves unproved, and why: a host is proved by tested connections from it and to it."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from doctor.mesh.plan import pairs_of
from doctor.mesh.result import Kind, MeshResult
from doctor.text.hostprogram import sections

_LISTENING = sections(__file__, "proof.txt")["listening"]


def unproved(seen: MeshResult, hosts: Sequence[str], known: Mapping[str, str]) -> dict[str, str]:
    """Unproved host -> why. An attempt that failed because of such a host says nothing of the other."""
    why = {left.host: left.reason for left in seen.left_out} | {**known}
    why |= {trouble.host: trouble.detail or trouble.kind for trouble in seen.troubles}
    for listener in seen.listeners:
        if listener.kind == "ephemeral" and listener.error in _LISTENING:
            why.setdefault(listener.host, f"{_LISTENING[listener.error]} {listener.detail}".strip())
    for link in seen.links:
        if not link.tested and not {link.source, link.target} & why.keys():
            why[link.source] = f"{link.source} -> {link.target}: {link.detail}"
    for host in hosts:
        if host not in seen.out_of:
            why.setdefault(host, "there was no host that it could connect to")
        if host not in seen.into:
            why.setdefault(host, "there was no host that could connect to it")
    tried = {(link.source, link.target, link.kind) for link in seen.tested}
    for source, target, kind in _planned(seen, hosts):
        if source not in why and target not in why and (source, target, kind) not in tried:
            why[source] = f"{source} -> {target}: not tried"
    return why


def _planned(seen: MeshResult, hosts: Sequence[str]) -> Iterator[tuple[str, str, Kind]]:
    """What a run tries between these hosts: ephemeral ports always, others if their listener is bound."""
    left_out = {left.host for left in seen.left_out}
    names = [host for host in hosts if host not in left_out]
    kinds: dict[str, set[Kind]] = defaultdict(lambda: {"ephemeral"})
    for listener in seen.listeners:
        if listener.error is None and listener.port is not None:
            kinds[listener.host].add(listener.kind)
    yield from ((s, t, kind) for s, t in pairs_of(names, seen.shape) for kind in kinds[t] if kind != "master")
    head = seen.head if seen.head in names and "master" in kinds[seen.head] else None
    yield from ((name, head, "master") for name in names if head and name != head)
