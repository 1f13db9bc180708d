"""Reports in which every text is hostile, and reports of many hosts."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import cache
from typing import Any, TypeVar, cast

import msgspec
from hypothesis import strategies as st

from doctor.facts.smoke import JudgedRun
from doctor.judge.hardware import Hardware, HardwarePart
from doctor.judge.verdict import Report
from doctor.model import Evidence, Finding
from tests.support.cases import from_cases
from tests.support.recordings import heard, recording, report
from tests.support.reports import SMALL_SHM, reports

T = TypeVar("T")
NASTY = (*from_cases(__file__, "NASTY", tuple[str, ...]), "\ud800")
"""Characters that end or begin something in one of the formats."""
nasty_text = st.lists(st.sampled_from(NASTY) | st.text(max_size=5), min_size=1, max_size=8).map("".join)


def poisoned(value: T, evil: str, *, around: bool = False) -> T:
    """The same value with hostile text in each of its texts: in place of the text, or before and after it."""
    made: Any = value
    if isinstance(value, Enum | JudgedRun):  # a run's words are not free text
        made = value
    elif isinstance(value, str):
        made = f"{evil}{value}{evil}" if around else f"{value}{evil}"
    elif isinstance(value, Mapping):
        made = {poisoned(k, evil, around=around): poisoned(v, evil, around=around) for k, v in value.items()}
    elif isinstance(value, (tuple, list, frozenset)):
        made = type(value)(poisoned(each, evil, around=around) for each in value)
    elif isinstance(value, msgspec.Struct):
        old = {name: getattr(value, name) for name in value.__struct_fields__}
        texts = {name: poisoned(each, evil, around=around) for name, each in old.items()}
        made = msgspec.structs.replace(value, **texts)
    elif is_dataclass(value) and not isinstance(value, type):
        old = {each.name: getattr(value, each.name) for each in fields(value) if each.init}
        made = replace(value, **{name: poisoned(each, evil, around=around) for name, each in old.items()})
    return cast(T, made)


PART = HardwarePart(
    "NPU 3", "910B", "0000:c1:00", "5", "S1", "Hisense LMQ8611-PC+", "200GE1/0/7 of Example Switch"
)
PLATE = Hardware("Maker Model", "ABC123", hidden=False, interface="eth0, MAC 0a:0b", parts={3: PART})


@cache
def furnished() -> Mapping[str, Report]:
    """The reports of every kind, with hardware, a device at fault and notes."""
    return {
        name: replace(
            made,
            seen=replace(made.seen, hardware={host.name: PLATE for host in made.hosts}),
            findings=tuple(_on_a_device(finding) for finding in made.findings),
            notes=(*made.notes, "a note"),
        )
        for name, made in reports().items()
    }


def _on_a_device(finding: Finding) -> Finding:
    places = tuple(replace(place, device=3) for place in finding.where)
    return replace(finding, where=places, evidence=(*finding.evidence, Evidence("dmesg", "one\ntwo")))


@cache
def many(number: int = 512) -> Report:
    """Hosts with a fault each, all different."""
    names = [f"node{n}" for n in range(1, number + 1)]
    sick = {
        name: heard(n, names[:n], spaces=SMALL_SHM.replace("65536", str(50000 + n)), names="")
        for n, name in enumerate(names, 1)
    }
    return report(recording(names, heard=sick, mesh=None))
