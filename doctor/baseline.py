"""What good runs had in common, in one file that people can read and change: `doctor baseline` writes it.

A host's own part holds what differs from the hosts of its kind, and its serial number, by which it is known
even under another name.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from doctor.errors import InputErrors, Mistake, UsageError
from doctor.expect import moment
from doctor.floors import ALONE
from doctor.smoke.onhost.sweepplan import SCOPES
from doctor.targets.inputkind import refuse_other
from doctor.text.nodeset import is_host
from doctor.text.printable import clean_line
from doctor.text.textfile import read_text
from doctor.text.yamlfile import convert, parse_yaml, walk

Value = str | int | float | bool | list[str | int | float] | None
Facts = dict[str, Value]
"""None: the hosts of its kind report it, and this host does not."""
Measure = tuple[float, float, int]
"""The median, how much one turn differs from the next (as a logarithm), and the number of turns."""
SCHEMA = 1
LINKS = ("out_gbit_s", "in_gbit_s", "both_gbit_s", "trip_us")
"""What a host sends, receives, does both at once; its quickest round trip. 1 Gbit is 10^9 bits of payload."""
EACH = (*ALONE, "login", "start", "dns", *SCOPES)
"""The first words of what else is measured, alone, at the start, and of collectives."""
WRITTEN_BY = "doctor baseline run.json, with the recording of --save, writes one."
_PLAIN = re.compile(r"[A-Za-z_/][\w./+-]*")
_WORDS = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}


class Kind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Hosts with the same product, model and number of devices."""

    hosts: int
    facts: Facts = {}
    links: dict[str, Measure] = {}
    each: dict[str, Measure] = {}

    @property
    def measures(self) -> Mapping[str, Measure]:
        return {**self.links, **self.each}


class OneHost(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    kind: str
    serial: str = ""
    facts: Facts = {}
    links: dict[str, Measure] = {}
    each: dict[str, Measure] = {}
    counts: dict[str, list[str]] = {}
    """By fact, the lines of what it had counted."""


class Baseline(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`made` is when the newest of the runs began, `load` the most that ran and waited on a core."""

    doctor: str
    schema: int
    made: str
    tool: str
    runs: list[str]
    kinds: dict[str, Kind]
    hosts: dict[str, OneHost]
    backend: str
    load: float
    """Last in the file, and always there: a file that was cut off lacks it."""

    @property
    def day(self) -> str:
        return self.made[:10]

    @property
    def counted(self) -> dict[str, dict[str, str]]:
        return {
            host: {fact: "\n".join(lines) for fact, lines in own.counts.items()}
            for host, own in self.hosts.items()
        }

    def facts(self, host: str) -> Facts:
        own = self.hosts[host]
        return {**self.kinds[own.kind].facts, **own.facts}

    def measures(self, host: str) -> Mapping[str, Measure]:
        own = self.hosts[host]
        return {**self.kinds[own.kind].measures, **own.links, **own.each}


def read_baseline(path: Path) -> Baseline:
    """Raises InputErrors and UsageError."""
    text = read_text(path)
    document = parse_yaml(text, str(path))
    lines = dict(walk(document.root))
    if "$.doctor" not in lines:
        refuse_other(str(path), text)
        raise UsageError(f"{path}: is not a baseline: it has no 'doctor: baseline'.", WRITTEN_BY)
    found: Baseline = convert(document, Baseline, str(path))
    mistakes = [Mistake(str(path), lines.get(place, 1), why) for place, why in nonsense(found)]
    if mistakes:
        raise InputErrors(mistakes)
    return found


def nonsense(found: Baseline) -> Iterator[tuple[str, str]]:
    """What no baseline has: the place of each, and what is wrong."""
    if found.doctor != "baseline":
        yield "$.doctor", "is not 'baseline'"
    if found.schema != SCHEMA:
        yield "$.schema", f"this version reads form {SCHEMA}"
    if moment(found.made) is None:
        yield "$.made", "is not a time such as 2026-11-12T05:40:00Z"
    if not found.hosts:
        yield "$.hosts", "it has no hosts"
    for name, host in found.hosts.items():
        if not is_host(name):
            yield f"$.hosts.{name}", f"{clean_line(name)!r} is not the name of a host"
        if host.kind not in found.kinds:
            yield f"$.hosts.{name}.kind", f"no kind is called {clean_line(host.kind)!r}"
        yield from _nonsense_of(f"$.hosts.{name}", host)
    for name, kind in found.kinds.items():
        yield from _nonsense_of(f"$.kinds.{name}", kind)


def _nonsense_of(place: str, own: Kind | OneHost) -> Iterator[tuple[str, str]]:
    known = [("links", key, each, key in LINKS) for key, each in own.links.items()]
    known += [("each", key, each, key.split(" ")[0] in EACH) for key, each in own.each.items()]
    for part, key, (middle, noise, turns), named in known:
        if not named:
            yield f"{place}.{part}.{key}", f"nothing that is measured is called {clean_line(key)!r}"
        elif not (0 < middle < math.inf and 0 <= noise < math.inf and turns > 0):
            yield f"{place}.{part}.{key}", "is not [median, noise, number], all above zero"


def as_yaml(baseline: Baseline) -> str:
    """A line for each value of a kind, and for each host."""
    return "\n".join(_lines(msgspec.to_builtins(baseline))) + "\n"


def _lines(content: Mapping[str, Any]) -> Iterator[str]:
    for key, value in content.items():
        if key == "kinds":
            yield "kinds:"
            for name, kind in value.items():
                yield f"  {_scalar(name)}:"
                for part, inner in kind.items():
                    lines = inner if isinstance(inner, dict) and inner else {}
                    yield f"    {part}:" if lines else f"    {part}: {_flow(inner)}"
                    yield from (f"      {_scalar(name)}: {_flow(each)}" for name, each in lines.items())
        elif key == "hosts":
            yield "hosts:"
            for name, host in value.items():
                yield f"  {_scalar(name)}: {_flow({part: inner for part, inner in host.items() if inner})}"
        else:
            yield f"{key}: {_flow(value)}"


def _flow(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_scalar(key)}: {_flow(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return _scalar(value) if isinstance(value, str) else json.dumps(value)


def _scalar(text: str) -> str:
    """Quoted unless every reader of YAML takes it for text."""
    plain = _PLAIN.fullmatch(text) and text.lower() not in _WORDS
    told = "".join(each if ord(each) > 0xFFFF else json.dumps(each)[1:-1] for each in text)
    return text if plain else f'"{told}"'
