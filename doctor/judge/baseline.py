"""Runs -> a baseline, and a run beside a baseline -> what has changed. Pure.

A link is slower if it carries less of what it did than those of like hosts do, by at least a tenth and by six
times the noise of either run. If only the noise of then was large, it must carry less than a quarter of the
least that was likely. Nothing is said while the processors are busier than they were.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import median, median_low

from doctor import __version__
from doctor.baseline import LINKS, SCHEMA, Baseline, Facts, Kind, Measure, OneHost, Value
from doctor.facts.baseline import UNSTEADY, ChangedFact, SinceBaseline, SlowerLinks
from doctor.facts.smoke import JudgedRun
from doctor.facts.system import NAMEPLATE, NO_SERIAL
from doctor.judge.fact_changes import OF_THE_MOMENT, SIZES, TITLES, differ, shown
from doctor.judge.fact_table import COLUMNS, fact_table
from doctor.judge.link_rates import load, measures, unit
from doctor.judge.reading import Reading
from doctor.recording import counted
from doctor.rules.alone import TIMES
from doctor.smoke.judge.links import LATE_FACTOR, LATE_SECONDS, NOISY
from doctor.smoke.onhost.sweepplan import SCOPES
from doctor.text.grouped import grouped

KIND = ("product", "device_name", "devices")
OF_THE_RUN = {"reached_by", "rank_address"}
"""Facts that depend on how the run was started."""
OWN = {column.key for column in COLUMNS if column.kind == "own"}
OF_PYTHON = {"python", "torch", "torch_npu", "mindspore"}
"""What another interpreter has otherwise."""
SAME_RATE = 0.02
LEAST, TIMES_NOISE, ENOUGH_HOSTS = 0.1, 6, 3
LEAST_OF = {
    "write": 0.75,
    "read": 0.75,
    "fsync": 0.95,
    **dict.fromkeys(SCOPES, 0.3),
    **dict.fromkeys(TIMES, 0.5),
}
"""By the first word: what varies that much on healthy hosts. From `HALF` on, their noise tells no more."""
HALF, MORE_SECONDS = 0.5, 1.0
OF_THE_LEAST = 0.25
BUSIER = 0.5
"""By how much more on each core the rates of links are no longer comparable."""
WHAT = {
    "out_gbit_s": "what it sends",
    "in_gbit_s": "what it receives",
    "both_gbit_s": "what it sends and receives at once",
    "trip_us": "its round trips",
}
OTHERWISE = "the baseline has no rates of links that were measured in the same way"


@dataclass(frozen=True, slots=True)
class GoodRun:
    """`hosts` are those of it that are healthy; `digest` is that of its recording."""

    digest: str
    reading: Reading
    hosts: Collection[str]


# Making one.


def baseline_of(runs: Sequence[GoodRun]) -> Baseline:
    """What the runs have in common. A fact that differs from one of them to another is left out."""
    runs = sorted(runs, key=lambda run: run.reading.recording.started)
    facts: dict[str, list[Facts]] = defaultdict(list)
    links: dict[str, list[Mapping[str, Measure]]] = defaultdict(list)
    serials: dict[str, str] = {}
    counts: dict[str, Mapping[str, str]] = {}
    loads, backends = [0.0], {""}
    for run in runs:
        counts |= counted(run.reading.recording.heard)
        serials |= {host: own for host, own in _serials(run.reading).items() if host in run.hosts}
        for host, own in _facts_by_host(run.reading).items():
            if host in run.hosts:
                facts[host].append(own)
        if whole := _whole_run(run.reading):
            loads.append(load(whole.result))
            backends.add(whole.plan.backend)
            for host, told in measures(whole).items():
                if host in run.hosts:
                    links[host].append(told)
    known = {host: _common(own) for host, own in facts.items()}
    alone, alike = _unlike(serials), len(backends) == 2
    rates = {host: _together(own) for host, own in links.items()} if alike else {}
    kinds = _kinds(known)
    shared = {
        name: Kind(len(hosts), _usual(known, hosts), *_parted(_usual_rates(rates, hosts)))
        for name, hosts in kinds.items()
    }
    of_kind = {host: name for name, hosts in kinds.items() for host in hosts}
    return Baseline(
        doctor="baseline",
        schema=SCHEMA,
        made=runs[-1].reading.recording.started,
        tool=__version__,
        runs=[run.digest for run in runs],
        kinds=shared,
        hosts={
            host: OneHost(
                of_kind[host],
                alone.get(host, ""),
                _own_facts(known[host], shared[of_kind[host]].facts),
                *_parted(_own_rates(rates.get(host, {}), shared[of_kind[host]].measures)),
                counts={fact: text.splitlines() for fact, text in counts.get(host, {}).items()},
            )
            for host in known
        },
        backend=max(backends) if alike else "",
        load=max(loads),
    )


def _whole_run(reading: Reading) -> JudgedRun | None:
    """The first smoke run that came to its end: later ones have fewer hosts."""
    return next((run for run in reading.runs if run.result.end.kind == "done"), None)


def _facts_by_host(reading: Reading) -> dict[str, Facts]:
    known = TITLES.keys() - OF_THE_MOMENT - OF_THE_RUN
    rows = [row for row in fact_table(reading) if row.key in known]
    found = grouped((host, (row.key, value)) for row in rows for host, value in row.values.items())
    return {host: dict(own) for host, own in found.items()}


def _serials(reading: Reading) -> dict[str, str]:
    """Host -> the serial number of the machine, if it is one, and nobody else's."""
    plates = reading.facts.all(NAMEPLATE).items()
    return _unlike({host: plate.serial.strip() for host, plate in plates if not plate.virtual})


def _unlike(serials: Mapping[str, str]) -> dict[str, str]:
    often = Counter(serials.values())
    return {host: own for host, own in serials.items() if often[own] == 1 and not NO_SERIAL.fullmatch(own)}


def _common(runs: Sequence[Facts]) -> Facts:
    """The facts of a host on which all of its runs agree that report them; the newest value."""
    found: Facts = {}
    odd = set()
    for facts in runs:
        odd |= {key for key in facts.keys() & found.keys() if differ(key, found[key], facts[key])}
        found |= facts
    return {key: found[key] for key in TITLES if key in found and key not in odd}


def _together(runs: Sequence[Mapping[str, Measure]]) -> dict[str, Measure]:
    """The middle of what was measured of a host in several runs, with the noise of the worst one."""
    values = grouped(rate for rates in runs for rate in rates.items())
    return {key: _middle(each) for key, each in values.items()}


def _middle(measures: Sequence[Measure]) -> Measure:
    middles, noises, turns = zip(*measures, strict=True)
    return median_low(middles), max(noises), min(turns)


def _kind(facts: Mapping[str, Value]) -> tuple[str, ...]:
    return tuple(str(facts.get(key, "")) for key in KIND)


def _kinds(known: Mapping[str, Facts]) -> dict[str, list[str]]:
    """Name of the kind -> its hosts."""
    groups = grouped((_kind(facts), host) for host, facts in known.items())
    named: dict[str, list[str]] = {}
    for (product, model, devices), hosts in groups.items():
        name = "-".join(filter(None, (product or "unknown", devices)))
        named[f"{name} {model}" if name in named else name] = hosts
    return named


def _usual(known: Mapping[str, Facts], hosts: Sequence[str]) -> Facts:
    """The facts that more than half of the hosts share; of sizes, the middle."""
    found: Facts = {}
    for key in TITLES:
        if key in SIZES and (sizes := [known[host][key] for host in hosts if key in known[host]]):
            found[key] = sorted(sizes, key=lambda size: float(str(size)))[len(sizes) // 2]
            continue
        votes = Counter(str(known[host][key]) for host in hosts if key in known[host] and key not in OWN)
        if votes and 2 * votes.most_common(1)[0][1] > len(hosts):
            wanted = votes.most_common(1)[0][0]
            found[key] = next(
                known[h][key] for h in hosts if key in known[h] and str(known[h][key]) == wanted
            )
    return found


def _own_facts(facts: Facts, kind: Facts) -> Facts:
    own = {key: value for key, value in facts.items() if key not in kind or differ(key, value, kind[key])}
    return {**own, **{key: None for key in kind if key not in facts}}


def _usual_rates(rates: Mapping[str, Mapping[str, Measure]], hosts: Iterable[str]) -> dict[str, Measure]:
    own = [rates[host] for host in hosts if host in rates]
    usual_noise = {key: median(each[key][1] for each in own if key in each) for key in {*chain(*own)}}
    return {key: (middle, usual_noise[key], turns) for key, (middle, _, turns) in _together(own).items()}


def _parted(rates: Mapping[str, Measure]) -> tuple[dict[str, Measure], dict[str, Measure]]:
    """Those of links, and the others."""
    others = {key: own for key, own in rates.items() if key not in LINKS}
    return {key: rates[key] for key in LINKS if key in rates}, others


def _own_rates(rates: Mapping[str, Measure], kind: Mapping[str, Measure]) -> dict[str, Measure]:
    """Those that differ from the usual rates of the kind, and those that varied more."""
    return {
        key: own
        for key, own in rates.items()
        if abs(own[0] / kind[key][0] - 1) > SAME_RATE or own[1] > SAME_RATE + kind[key][1]
    }


# Comparing with one.


def since(reading: Reading, baseline: Baseline) -> SinceBaseline:
    facts, serials = _facts_by_host(reading), _serials(reading)
    entries = _entries(facts, serials, baseline)
    kinds = {_kind(kind.facts): kind for kind in baseline.kinds.values()}
    changes: dict[str, dict[tuple[str, str], list[str]]] = defaultdict(lambda: defaultdict(list))
    strangers: dict[str, str] = {}
    for host, now in facts.items():
        entry, kind = entries.get(host), kinds.get(_kind(now))
        if entry is None and kind is None:
            strangers[host] = "neither it nor a host of its kind is in the baseline"
            continue
        for title, change in _changes(baseline.facts(entry) if entry else kind.facts if kind else {}, now):
            changes[title][change].append(host)
        was, serial = baseline.hosts[entry].serial if entry else "", serials.get(host, "")
        if was and serial and was != serial:
            changes["serial number"][was, serial].append(host)
    links = _links(reading, baseline, entries)
    return SinceBaseline(baseline.day, _by_hosts(changes, list(facts)), strangers, *links)


def _entries(facts: Iterable[str], serials: Mapping[str, str], baseline: Baseline) -> dict[str, str]:
    """Host -> its name in the baseline: the same machine, else the same name, if its machine is not here."""
    told = _unlike({name: host.serial for name, host in baseline.hosts.items()})
    by_serial = {serial: name for name, serial in told.items()}
    machines = {host: by_serial[own] for host, own in serials.items() if own in by_serial}
    free = baseline.hosts.keys() - machines.values()
    return {**{host: host for host in facts if host in free}, **machines}


def _changes(then: Mapping[str, Value], now: Mapping[str, Value]) -> Iterator[tuple[str, tuple[str, str]]]:
    """Title -> before and after, of each fact that both report."""
    both = {key for key in then.keys() & now.keys() if then[key] is not None}
    odd = [key for key in TITLES if key in both and differ(key, then[key], now[key])]
    for key in odd:
        if key not in OF_PYTHON or "python_path" not in odd:
            yield TITLES[key], (shown(key, then), shown(key, now))


def _by_hosts(
    changes: Mapping[str, Mapping[tuple[str, str], Sequence[str]]], order: Sequence[str]
) -> dict[tuple[str, ...], tuple[ChangedFact, ...]]:
    """What changed on the same hosts is one thing, with one cause."""
    found: dict[tuple[str, ...], list[ChangedFact]] = defaultdict(list)
    place = {host: at for at, host in enumerate(order)}
    for title, forms in changes.items():
        hosts = tuple(sorted((host for own in forms.values() for host in own), key=place.__getitem__))
        found[hosts].append(ChangedFact(title, {form: tuple(own) for form, own in forms.items()}))
    return {hosts: tuple(facts) for hosts, facts in found.items()}


Links = tuple[tuple[SlowerLinks, ...], str, Mapping[tuple[str, str], bool]]


def _links(reading: Reading, baseline: Baseline, entries: Mapping[str, str]) -> Links:
    """What is slower, why nothing could be compared, and what is steady."""
    whole = _whole_run(reading)
    if whole is None:
        return (), "no smoke run came to its end, so the rates of links are not known", {}
    now = {host: own for host, own in measures(whole, at_best=True).items() if host in entries}
    then = {host: baseline.measures(entries[host]) for host in now}
    both = {
        key: {h: (then[h][key], own[key]) for h, own in now.items() if key in own and key in then[h]}
        for key in dict.fromkeys(chain(LINKS, *now.values()))
    }
    if whole.plan.backend != baseline.backend:
        return (), f"the rates of the baseline are those of {baseline.backend or 'several backends'}", {}
    if is_busier(whole, baseline.load):
        busy = load(whole.result)
        why = f"the processors are busier than then: a load of {busy:g} a core, {baseline.load:g} then"
        return (), why, {}
    kinds = {host: baseline.hosts[entries[host]].kind for host in now}
    pair = whole.plan.hosts if len(whole.plan.hosts) == 2 else ()
    found: list[SlowerLinks] = []
    for key, own in both.items():
        found += _of_pair(key, own, pair) if pair and key in LINKS else slower_by_kind(key, own, kinds)
    steady = {
        (host, key): max(was[1], is_now[1]) <= NOISY
        for key in both
        for host, (was, is_now) in both[key].items()
        if key != "trip_us"
    }
    of_links = [steadily for (_, key), steadily in steady.items() if key in LINKS]
    why = "" if found or any(of_links) else UNSTEADY if of_links else OTHERWISE
    return tuple(found), why, steady


def is_busier(run: JudgedRun, then: float) -> bool:
    return load(run.result) > then + BUSIER


def slower_by_kind(
    key: str, rates: Mapping[str, tuple[Measure, Measure]], kinds: Mapping[str, str]
) -> Iterator[SlowerLinks]:
    for hosts in map(dict, grouped((kinds[host], (host, own)) for host, own in rates.items()).values()):
        many = len(hosts) >= ENOUGH_HOSTS or key.split(" ")[0] in ("inter", "all")  # nobody's alone
        usual = min(1.0, median(_share(key, *own) for own in hosts.values())) if many else 1.0
        then, now = (_middle([own[end] for own in hosts.values()]) for end in (0, 1))
        if many and _is_slower(key, then, now, 1.0):
            yield SlowerLinks(WHAT.get(key, key), _in_words(key, hosts), share=_share(key, then, now))
        slow = {host: own for host, own in hosts.items() if _is_slower(key, *own, usual)}
        if slow:
            yield SlowerLinks(WHAT.get(key, key), _in_words(key, slow))


def _of_pair(
    key: str, rates: Mapping[str, tuple[Measure, Measure]], pair: Sequence[str]
) -> Iterator[SlowerLinks]:
    """Two hosts: which of them is slow cannot be told, only the direction."""
    if key == "in_gbit_s":
        return  # what the other one sends
    for host, own in rates.items():
        if _is_slower(key, *own, 1.0):
            (other,) = (each for each in pair if each != host)
            yield SlowerLinks(WHAT.get(key, key), _in_words(key, {host: own}), subject=f"{host} -> {other}")


def _share(key: str, then: Measure, now: Measure) -> float:
    return then[0] / now[0] if unit(key)[0] in ("us", "s") else now[0] / then[0]


def _is_slower(key: str, then: Measure, now: Measure, usual: float) -> bool:
    share, least = _share(key, then, now) / usual, LEAST_OF.get(key.split(" ")[0], LEAST)
    if key == "trip_us":
        return share * LATE_FACTOR < 1 and now[0] > then[0] + LATE_SECONDS * 1e6
    if least >= HALF:
        return share < 1 - least and (unit(key)[0] != "s" or now[0] > then[0] + MORE_SECONDS)
    if now[1] > NOISY:
        return False
    if then[1] > NOISY:
        return share < OF_THE_LEAST * math.exp(-3 * then[1])
    return share < 1 - max(least, TIMES_NOISE * max(then[1], now[1]) / math.sqrt(min(then[2], now[2])))


def _in_words(key: str, rates: Mapping[str, tuple[Measure, Measure]]) -> dict[str, tuple[str, str]]:
    word = unit(key)[0]
    return {host: (f"{then[0]:g} {word}", f"{now[0]:g} {word}") for host, (then, now) in rates.items()}
