"""Jobs of other users, whose ranks may not be read: which of them may be one."""

from doctor.live.evidence import LiveEvidence
from doctor.live.onhost.launchers import NAMELESS
from doctor.live.wires import SHORT


def nameless(evidence: LiveEvidence) -> dict[str, dict[str, list[str]]]:
    """Jobs whose ranks may not be read and whose name is only valid on their host, by user and host."""
    found: dict[str, dict[str, list[str]]] = {}
    for host in evidence.hosts:
        for each in host.members:
            if each.hidden and each.job.startswith(NAMELESS):
                jobs = found.setdefault(each.user, {}).setdefault(host.host, [])
                jobs += [each.job] if each.job not in jobs else []
    return found


def same_by_connections(evidence: LiveEvidence) -> dict[str, str]:
    """The name of the whole job for each nameless job that is a part of it. Two nameless jobs belong together
    if they are the only ones of their user on their hosts and this user's processes there exchange data.
    """
    loose = {host.host: host.loose for host in evidence.hosts}
    same: dict[str, str] = {}
    for user, jobs in nameless(evidence).items():
        alone = {host: names[0] for host, names in jobs.items() if len(names) == 1}
        ends = {
            (each.local, each.peer): host
            for host in alone
            for each in loose[host]
            if each.user == user and each.received >= SHORT
        }
        for (local, peer), host in ends.items():
            other = ends.get((peer, local), host)
            one, two = (same.get(alone[each], alone[each]) for each in (host, other))
            if one != two:
                same = {name: one if of == two else of for name, of in same.items()} | {two: one}
    return same
