"""Describes what was read, and how a job ran by its own words."""

from collections import Counter

from doctor.logs.judge.case import LogCase
from doctor.logs.judge.words import MOST, REPORTERS, folded
from doctor.logs.model import Role


def readout(case: LogCase) -> str:
    """A summary such as "8 files of 8 ranks on node[1-4], torchrun, 1,204,331 lines"."""
    files = [file for file in case.logs.files if file.lines]
    said = f"{len(files)} file{'' if len(files) == 1 else 's'}"
    ranks = len(case.logged)
    said += f" of {ranks} rank{'' if ranks == 1 else 's'}" if ranks else ""
    hosts = {host for rank in case.logged if (host := case.places.host_of_rank.get(rank))}
    hosts |= {case.places.host(file.who.host) for file in files if file.who.host}
    said += f" on {folded(hosts)}" if hosts else ""
    forms = Counter(form for file in files for form in file.forms if form in REPORTERS)
    if forms:
        said += ", " + ", ".join(REPORTERS[form] for form, _ in forms.most_common(MOST))
    lines = sum(file.lines for file in files)
    return f"{said}, {lines:,} line{'' if lines == 1 else 's'}"


def ways_of(case: LogCase) -> tuple[str, ...]:
    """One sentence for each way, such as its network, with the hosts that go it. They accuse nobody."""
    files = {file.name: file for file in case.logs.files}
    found: dict[str, set[str]] = {}
    for each in case.logs.sightings:
        if each.symptom.role is Role.STATES:
            host = each.first.who.host or files[each.first.file].who.host
            found.setdefault(each.symptom.title, set()).update((case.places.host(host),) if host else ())
    return tuple(says + (f" on {folded(hosts)}" if hosts else "") for says, hosts in sorted(found.items()))
