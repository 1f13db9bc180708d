"""What a run is compared with: a floor, and what has changed on its hosts since a baseline was made."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from doctor.api import RunValue
from doctor.floors import CollectiveFloor as CollectiveFloor
from doctor.floors import Floor as Floor


@dataclass(frozen=True, slots=True)
class ChangedFact:
    """`forms`: each change that it went through on some host, as (before, after), in words -> its hosts."""

    title: str
    forms: Mapping[tuple[str, str], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class SlowerLinks:
    """What carries or does less than it did. `hosts`: host -> (before, after), in words.

    `subject` is the direction, if only a pair of hosts was measured. `share` is what all links of the kind
    now carry of what they did, if this is about all of them alike, else None.
    """

    what: str
    hosts: Mapping[str, tuple[str, str]]
    subject: str | None = None
    share: float | None = None


@dataclass(frozen=True, slots=True)
class SinceBaseline:
    """`changed`: hosts -> the facts that changed on exactly these. `strangers`: host -> why the baseline says
    nothing of it. `not_compared`: why the links could not be compared; empty if they were. `steady`: a host,
    and what was measured of it, such as "out_gbit_s" -> whether this varies little enough.
    """

    day: str
    changed: Mapping[tuple[str, ...], tuple[ChangedFact, ...]]
    strangers: Mapping[str, str]
    slower: tuple[SlowerLinks, ...] = ()
    not_compared: str = ""
    steady: Mapping[tuple[str, str], bool] = field(default_factory=dict)


UNSTEADY = "rates differed too much from one time to the next"

SINCE: RunValue[SinceBaseline] = RunValue("baseline", of_hosts=True)
"""Missing if no baseline was given."""

FLOOR: RunValue[Floor | None] = RunValue("floor")
"""What links and hosts must do at least. Only acceptance tests have checks that ask for it."""

COLLECTIVE_FLOORS: RunValue[tuple[CollectiveFloor, ...]] = RunValue("floors of collectives")
"""Missing if there is none."""
