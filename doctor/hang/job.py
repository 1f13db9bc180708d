"""Jobs of several hosts that only seem to be one: a rendezvous on a loopback address is each host's own."""

from __future__ import annotations

from msgspec.structs import replace

from doctor.hang.evidence import HostSeen, Member
from doctor.text.nodeset import is_ip


def own_jobs(seen: HostSeen) -> HostSeen:
    return replace(seen, members=tuple(_own(member, seen.host) for member in seen.members))


def _own(member: Member, host: str) -> Member:
    address, _, _ = member.master.rpartition(":")
    alone = _is_loopback(address) or member.job.startswith("started by process ")
    return replace(member, job=f"{member.job} on {host}"[:256]) if alone else member


def _is_loopback(address: str) -> bool:
    bare = address.strip("[]")
    return bare == "localhost" or (is_ip(bare) and (bare.startswith("127.") or bare == "::1"))
