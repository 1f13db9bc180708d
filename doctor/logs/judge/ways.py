"""How a job ran by its own words, such as over which network: told with every verdict, accusing nobody."""

from doctor.logs.judge.case import LogCase
from doctor.logs.judge.words import folded
from doctor.logs.model import Role


def ways_of(case: LogCase) -> tuple[str, ...]:
    """One sentence for each way, with the hosts that go it: "NCCL sends over sockets on node1"."""
    files = {file.name: file for file in case.logs.files}
    found: dict[str, set[str]] = {}
    for each in case.logs.sightings:
        if each.symptom.role is Role.STATES:
            host = each.first.who.host or files[each.first.file].who.host
            found.setdefault(each.symptom.title, set()).update((case.places.host(host),) if host else ())
    return tuple(says + (f" on {folded(hosts)}" if hosts else "") for says, hosts in sorted(found.items()))
