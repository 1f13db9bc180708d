"""Why a rank is late: the line at which it is more often than the others, and what it and its host use."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import median

from doctor.hang.judge.locks import fits, named
from doctor.live.collectives import in_backward
from doctor.live.evidence import Frame, JobMember
from doctor.live.places import is_library, place_of
from doctor.live.wires import Key, key
from doctor.slow.evidence import Profile
from doctor.slow.judge.judgement import Lag, LateReason, Where
from doctor.slow.judge.series import Sampled, is_pipeline, own_line, stacks_of, waited_in
from doctor.slow.judge.words import keys_words, percent
from doctor.text.hostprogram import sections

STANDS_OUT = 0.05
ENOUGH = 20
"""Samples of a rank's stacks without which no line is excluded."""
ALSO_THERE = 0.02
"""The share from which on the others are at the line as well."""
THROTTLED = 0.2
STARVED, TIMES, TIMES_NICE = 0.10, 4.0, 1.5
HOLDS = 0.2
"""The share of samples in which another thread than the main one holds the GIL."""
RATE = 100_000
"""Bytes a second that count as reading or writing."""
TIMES_MORE = 3.0
MORE_CPU = 0.1
AWAKE = 0.5
"""The share of the time that a thread wants a processor, from which on it computes, or spins to wait."""
MOSTLY = 0.6
BUSY = 0.5
"""The share of a processor from which on it is not called free, or that says more than a line."""
NO_STACKS = "its stacks were not seen, so it is not known why"
_LOADER = "torch/utils/data/"
_FETCHES = "torch/utils/data/_utils/fetch.py"
"""Where samples are read: in the rank itself only if its loader has no workers."""
_GC = re.compile(r"\bgc\.collect\(")
_SYNC = re.compile(r"\bfsync\(|\bflush\(|\bfdatasync\(")
_SLEEPS = re.compile(r"\bsleep\(")
_SAVES = re.compile(r"save|checkpoint|ckpt|dump", re.I)
_EVALUATES = re.compile(r"eval|valid|test_|infer", re.I)
_WEAK = (LateReason.UNEVEN, LateReason.ELSEWHERE)
"""What a processor or the GIL explains better."""
_LIMITED = (*_WEAK, LateReason.COMPUTES)
"""What is explained better by less of a processor than the others get."""
BY_DESIGN = (LateReason.UNEVEN, LateReason.COMPUTES, LateReason.EVERYTHING, None)
AT_WORK = (*_LIMITED, LateReason.EVERYTHING, None)
"""What is only known by the lines at which it is."""
Line = tuple[str, str, int]
"""A line of the user's code: its file, its function and its number."""
_NOWHERE: tuple[float, Frame | None] = (0.0, None)
ALIKE = 0.15
"""By how much of what a rank does a line's part may differ, if each line takes longer in proportion."""
ONE = 0.7
"""The part of what a rank does from which on a line is all that takes longer."""
_SLEEPS_IN = sections(__file__, "sleeps.txt")
_WAITS, _RESTS = (tuple(_SLEEPS_IN[part].items()) for part in ("waits", "rests"))
"""Functions of the kernel in which a main thread sleeps, and what it does there; the second may be a part of
reading, or the work itself.
"""
THREAD, LOCK, SLEEPS = dict(_WAITS)["futex"], _WAITS[0][1], dict(_RESTS)["nanosleep"]
_NETWORK = re.compile(r"sock|sendto|connect\(|getaddrinfo|gethostby|url|http|request", re.I)
_STOPS = "signal_stop|ptrace_stop|refrigerator|freezer"
NO_DEVICE = "|".join(names for names, _ in (*_WAITS, *_RESTS) if not re.search("futex|poll", names))
"""Functions of the kernel in which no host waits for its device."""


@dataclass(frozen=True, slots=True)
class Reasons:
    where: Where | None
    reason: LateReason | None
    """None if not enough of it was seen."""
    why: tuple[str, ...]


def reasons(seen: Sampled, who: Key, others: Sequence[Key], lag: Lag) -> Reasons:
    """Why `who` is late, compared with `others`."""
    used = {each: _Rates(seen, each) for each in (who, *others)}
    here, rest = used[who], [used[each] for each in others]
    where, alike = _where(seen, who, others)
    at_line = [*_at_line(where, here, rest, seen, lag)] if where is not None else []
    limits = [*_throttled(here, rest), *_stopped(seen, who, others), *_underserved(here, rest, seen, who)]
    short = limits or [*_gil(seen, who)]
    starved = [] if short else [*_starved(here, rest, seen, who)]
    part = where is not None and here.starved < BUSY * (where.share - where.others)
    weak = not at_line or at_line[0][0] in (_WEAK, _LIMITED)[bool(limits)]
    weak = weak and not (starved and part and lag is not Lag.STARVED)
    said = [*short, *starved, *at_line] if weak else [*at_line, *short, *starved]
    if said:
        return Reasons(where, said[0][0], tuple(words for _, words in said))
    if not (_compared(seen, [who]) and _compared(seen, others)):
        return Reasons(where, None, (NO_STACKS,))
    if not alike:
        return Reasons(where, None, ("no line of it stands out",))
    everything = "everything takes longer there, in proportion: it has more to do, or its host is slower"
    return Reasons(where, LateReason.EVERYTHING, (everything,))


def _compared(seen: Sampled, some: Sequence[Key]) -> bool:
    """Whether the stacks of any of these were seen often enough to exclude that a line stands out."""
    return any(sum(profile.main) >= ENOUGH for each in some for profile in seen.profiles(each)[:1])


Said = Iterator[tuple[LateReason, str]]


class _Rates:
    """What a rank used, a second."""

    def __init__(self, seen: Sampled, of: Key) -> None:
        self.of, rounds = of, seen.ranks(of)
        seconds = seen.seconds or 1.0

        def total(name: str) -> float:
            return float(sum(getattr(each.used, name) for each in rounds))

        self.cpu, self.starved = total("cpu") / seconds, total("starved") / seconds
        self.ran = total("ran") / seconds
        self.awake = self.ran + self.starved
        self.read, self.wrote = total("read") / seconds, total("written") / seconds
        self.written = total("disk_written") / seconds
        self.periods, self.throttled = total("periods"), total("throttled")
        self.nice = max((each.used.nice for each in rounds), default=0)

    @property
    def served(self) -> float:
        """For what share of the time that its main thread wants a processor it has one."""
        return 1 - self.starved / self.awake if self.awake else 1.0

    def awake_at(self, where: Where, rest: Sequence[_Rates]) -> float:
        """For what share of its time at that line it wants a processor, if elsewhere it is as the others."""
        return (self.awake - ((1 - where.share) * median(each.awake for each in rest))) / where.share

    @property
    def short(self) -> float:
        """The share of the periods of its quota in which it was throttled."""
        return self.throttled / self.periods if self.periods else 0.0


def _throttled(here: _Rates, rest: Sequence[_Rates]) -> Said:
    if here.short >= THROTTLED and here.short >= 2 * median(each.short for each in rest):
        of = f"{here.throttled:.0f} of {here.periods:.0f} periods"
        yield LateReason.QUOTA, f"the CPU quota of its group is used up: throttled in {of}"


def _stopped(seen: Sampled, who: Key, others: Sequence[Key]) -> Said:
    share = slept(seen, who, _STOPS)
    if share - median(slept(seen, each, _STOPS) for each in others) >= STANDS_OUT:
        yield LateReason.STOPPED, f"a signal, a debugger or a freezer stops it {percent(share)} of the time"


def _underserved(here: _Rates, rest: Sequence[_Rates], seen: Sampled, who: Key) -> Said:
    """Where all want a processor nearly always, as if they spin while they wait: who gets far less of one."""
    least = min((each.served for each in rest), default=0.0)
    if here.short >= THROTTLED or here.starved < STARVED or here.served * TIMES > least or not _spin(rest):
        return
    gets = f"gets a processor for {percent(here.served)} of the time that it wants one"
    nice = _nice(here, rest)
    said = f"{gets} (others at least {percent(least)}){nice}"
    yield LateReason.NICE if nice else LateReason.HOGS, said + _beside(seen, who)


def _spin(rest: Sequence[_Rates]) -> bool:
    return all(each.awake >= AWAKE for each in rest)


def is_starved(seen: Sampled, who: Key, others: Sequence[Key]) -> bool:
    """Whether it waits for a processor, and far longer than the others; just longer, if its nice says so."""
    here, rest = _Rates(seen, who), [_Rates(seen, each) for each in others]
    times = TIMES_NICE if _nice(here, rest) else TIMES
    return here.starved >= STARVED and here.starved >= times * max((e.starved for e in rest), default=0.0)


def _nice(here: _Rates, rest: Sequence[_Rates]) -> str:
    """Its nice in words, if all others have a lower one."""
    usual = max((each.nice for each in rest), default=here.nice)
    return f"; its nice is {here.nice}, that of the others at most {usual}" if here.nice > usual else ""


def starved_share(seen: Sampled, of: Key) -> float:
    """0 if it mostly sleeps: whoever waits for others waits for a processor by chance, too."""
    return rates.starved if (rates := _Rates(seen, of)).awake >= AWAKE else 0.0


def unserved(seen: Sampled, late: Sequence[Key], others: Sequence[Key]) -> float:
    """How much longer than the others these wait for a processor, if they have no more to do: by chance, on
    a host that is shared with others.
    """
    here, rest = ([_Rates(seen, each) for each in of] for of in (late, others))
    more = median(each.starved for each in here) - median(each.starved for each in rest)
    alike = median(each.ran for each in here) < TIMES_NICE * median(each.ran for each in rest)
    return more if alike and more >= STANDS_OUT else 0.0


def _starved(here: _Rates, rest: Sequence[_Rates], seen: Sampled, who: Key) -> Said:
    if not is_starved(seen, who, [each.of for each in rest]) or here.short >= THROTTLED:
        return
    waits, most = percent(here.starved), percent(max(each.starved for each in rest))
    words = f"waits for a processor {waits} of the time (others at most {most})"
    nice = _nice(here, rest)
    yield LateReason.NICE if nice else LateReason.HOGS, words + nice + _beside(seen, who)


def _beside(seen: Sampled, who: Key) -> str:
    """What else uses the processors of its host."""
    busiest = Counter[tuple[int, str, str]]()
    for number in seen.rounds:
        for each in seen.round(who[0], number).busiest:
            busiest[each.pid, each.name, each.user] += round(100 * each.cpu / seen.seconds)
    beside = [
        f"{name} (pid {pid}, {user}) uses {n} % of one"
        for (pid, name, user), n in busiest.most_common(3)
        if n >= 10
    ]
    return f"; beside it {'; '.join(beside)}" if beside else ""


def _where(seen: Sampled, who: Key, others: Sequence[Key]) -> tuple[Where | None, bool]:
    """The line at which it is more often outside than the others, and whether it is longer at each of its
    lines, in the same proportion.
    """
    shown = ((_lines(seen, each), _compared(seen, [each])) for each in others)
    here, there = _lines(seen, who), [lines for lines, enough in shown if lines or enough]
    if not here or not there:
        return None, False

    def usual(line: Line) -> float:
        return median(each.get(line, _NOWHERE)[0] for each in there)

    more = {line: share - usual(line) for line, (share, _) in here.items()}
    line = max(more, key=lambda each: more[each])
    mine, theirs = sum(share for share, _ in here.values()), sum(map(usual, {*here, *chain(*there)}))
    alike = all(
        abs(here.get(each, _NOWHERE)[0] / mine - usual(each) / (theirs or 1.0)) < ALIKE
        for each in {*here, *chain(*there)}
    )
    if more[line] < STANDS_OUT or (alike and here[line][0] < ONE * mine):
        return None, alike and mine - theirs >= STANDS_OUT
    where = Where(here[line][1], here[line][0], usual(line))
    return _caller(where, seen, who, others) or where, False


def _caller(where: Where, seen: Sampled, who: Key, others: Sequence[Key]) -> Where | None:
    """The line that calls for what it does more than the others, which are never there, if it comes there by
    other lines, too: an evaluation beside the training.
    """
    if where.others < ALSO_THERE:
        return None
    known = [found for each in others if (found := _lines(seen, each, callers=True))]
    least, most = MOSTLY * (where.share - where.others), where.share - ALSO_THERE
    own = [
        Where(frame, share, 0.0)
        for line, (share, frame) in _lines(seen, who, callers=True).items()
        if least <= share <= most and max(each.get(line, _NOWHERE)[0] for each in known) < ALSO_THERE
    ]
    return max(own, key=lambda each: each.share, default=None)


def _lines(seen: Sampled, of: Key, *, callers: bool = False) -> dict[Line, tuple[float, Frame]]:
    """The share of samples outside collectives at each line of the user's code, or at what it calls. What a
    rank waits inside its backward, which its threads show and its stack does not, is not work there.
    """
    profile = next(iter(seen.profiles(of)), None)
    if profile is None:
        return {}
    whole, waited, inside = max(1, sum(profile.main)), 0, 0
    counts: Counter[Line] = Counter()
    gradients: Counter[Line] = Counter()
    frames: dict[Line, Frame] = {}
    for stack, parts in stacks_of(profile):
        if waited_in(stack, seen.has_devices):
            waited += sum(parts)
            continue
        own = {(each.file, each.name, each.line): each for each in stack if not is_library(each.file)}
        inside += sum(parts) if own and in_backward(stack) else 0
        for line in own if callers else [*own][:1]:
            (gradients if in_backward(stack) else counts)[line] += sum(parts)
            frames.setdefault(line, own[line])
    hidden = min(1.0, max(0.0, seen.inside(of) * whole - waited) / inside) if inside else 0.0
    return {
        line: ((counts[line] + (1 - hidden) * gradients[line]) / whole, own) for line, own in frames.items()
    }


def places(seen: Sampled) -> Mapping[Key, str]:
    """The place at which each recorded rank is most often outside."""
    found = {}
    for each in seen.keys:
        if lines := _lines(seen, each):
            found[each] = place_of(max(lines.values(), key=lambda one: one[0])[1])
    return found


def _at_line(where: Where, here: _Rates, rest: Sequence[_Rates], seen: Sampled, lag: Lag) -> Said:
    source, name, who = where.frame.source, where.frame.name, here.of
    loads = _loads(seen, who, where.frame)
    waits = "" if loads else _asleep(where, here, rest, seen, _WAITS)
    short = is_starved(seen, who, [each.of for each in rest])
    if _GC.search(source):
        yield LateReason.GC, "it collects garbage there"
    elif _SYNC.search(source) and here.written > RATE / 10:
        yield LateReason.WRITES, f"it waits until its data is on the disk, {_rate(here.written)}"
    elif lag is Lag.PAUSES and _SAVES.search(name + source):
        yield LateReason.CHECKPOINT, f"it saves a checkpoint, {_rate(max(here.written, here.wrote))}"
    elif lag is Lag.PAUSES and _EVALUATES.search(name + source):
        yield LateReason.EVALUATION, "it evaluates while the others wait"
    elif waits:
        yield LateReason.ELSEWHERE, waits
    elif here.read > RATE and here.read > TIMES_MORE * (usual := median(each.read for each in rest)):
        files = _files(seen, who)
        of = f" from {files[0]}" if len(files) == 1 else ""
        yield LateReason.READS, f"it reads {_rate(here.read)}{of} (others {_rate(usual)})"
    elif here.wrote > RATE and here.wrote > TIMES_MORE * (usual := median(each.wrote for each in rest)):
        yield LateReason.WRITES, f"it writes {_rate(here.wrote)} (others {_rate(usual)})"
    elif loads:
        yield LateReason.LOADER, loads
    elif where.others >= ALSO_THERE:
        yield LateReason.UNEVEN, f"it takes longer at the same line as the others ({percent(where.others)})"
    elif _SLEEPS.search(source) and slept(seen, who, "nanosleep") >= STANDS_OUT:
        yield LateReason.ELSEWHERE, SLEEPS
    elif _spin(rest) and here.awake_at(where, rest) >= AWAKE:
        yield LateReason.COMPUTES, "it computes there, and the others spin while they wait"
    elif _computes_more(here, where, rest):
        others = percent(median(each.cpu for each in rest))
        said = f"it computes there: {percent(here.cpu)} of a processor, the others {others}"
        yield LateReason.COMPUTES, said
    elif words := _asleep(where, here, rest, seen, _RESTS):
        yield LateReason.ELSEWHERE, words
    elif not short and here.awake_at(where, rest) >= AWAKE and slept(seen, who, "") < STANDS_OUT:
        yield LateReason.COMPUTES, "it computes there"
    else:
        asleep = here.awake_at(where, rest) < 1 - AWAKE if _spin(rest) else here.cpu < BUSY
        free = ", and its processor is free" if asleep and (here.starved < STARVED or _spin(rest)) else ""
        yield LateReason.ELSEWHERE, f"it is there{free}"


def _asleep(
    where: Where, here: _Rates, rest: Sequence[_Rates], seen: Sampled, known: Sequence[tuple[str, str]]
) -> str:
    """What it sleeps in at that line, if it does so more than the others for most of its time there."""
    for names, words in known:
        usual = median(slept(seen, each.of, names) for each in rest)
        if slept(seen, here.of, names) - usual > (where.share - where.others) * BUSY:
            if shown := _shown(seen, here.of, where.frame, words):
                return shown
            threads = _threads(next(iter(seen.profiles(here.of)), None)) if words == THREAD else ()
            if _NETWORK.search(where.frame.source) and "an answer" in words:
                return "it waits for an answer over the network there, as of a service or a name server"
            return words + "".join(f"; one is in {place}" for place, _ in threads)
    return ""


def _shown(seen: Sampled, who: Key, frame: Frame, words: str) -> str:
    """The same with the lock and its holder, or whoever does not read what it sends, if a look shows that."""
    for look in (look for each in seen.job.ranks if key(each) == who for look in each.looks):
        full = next((each.peer for each in look.connections if each.persist and each.awaited), "")
        if full and "an answer" in words:
            return f"it waits there until {full} reads what it sends"
        lock = next((each for each in look.locks if each.holders and fits(each, (frame,))), None)
        there = {(each.file, each.line) for main in look.python[:1] for each in main.frames}
        if lock and words in (LOCK, SLEEPS) and (frame.file, frame.line) in there:
            holder = who[0], lock.holders[0].pid
            by = keys_words(seen.job, [holder]) if holder in seen.keys else named(lock.holders[0])
            return f"it waits for the lock {lock.path} there; {by} had it in a look"
    return ""


def slept(seen: Sampled, who: Key, names: str) -> float:
    """Its share of the time outside collectives and asleep in such functions of the kernel."""
    ranks, sends = seen.ranks(who), "limited" if is_pipeline(seen) else "-"
    told = (told for each in ranks for told in each.outside.items())
    slept = sum(n for name, n in told if re.search(names, name) and not name.startswith(sends))
    return slept / max(sum(sum(each.samples) for each in ranks), 1)


def _computes_more(here: _Rates, where: Where, rest: Sequence[_Rates]) -> bool:
    """Whether it uses more of a processor than the others, also where it gets little of what it wants."""
    if here.cpu > median(each.cpu for each in rest) + MORE_CPU:
        return True
    return here.awake_at(where, rest) >= AWAKE and here.ran >= TIMES_MORE * median(each.ran for each in rest)


def _loads(seen: Sampled, who: Key, frame: Frame) -> str:
    """How it gets its samples at that line; empty if it gets none there."""
    stacks = (stack for profile in seen.profiles(who)[:1] for stack, _ in stacks_of(profile))
    files = {each.file for stack in stacks if own_line(stack) == frame for each in stack}
    if any(_FETCHES in file for file in files):
        return "it loads its samples itself (num_workers=0)"
    loader = any(_LOADER in file for file in files)
    return "it waits for its data loader" + _worker(seen, who) if loader else ""


def _worker(seen: Sampled, who: Key) -> str:
    """Where its busiest worker is."""
    workers = [(each.host, each.pid) for each in seen.job.helpers if (each.host, each.helps) == who]
    found = [(share, frame, of[1]) for of in workers for share, frame in _lines(seen, of).values()]
    if not found:
        return ""
    share, frame, pid = max(found, key=lambda one: one[0])
    return f", whose worker (pid {pid}) is in {frame.name}, {place_of(frame)}, {percent(share)} of the time"


def _files(seen: Sampled, who: Key) -> list[str]:
    """What it has open and no other rank has."""
    members: dict[Key, JobMember] = {(each.host, each.pid): each for each in seen.job.ranks}
    opened = {of: {f for look in m.looks for f in look.files} for of, m in members.items()}
    others = set[str]().union(*(files for of, files in opened.items() if of != who))
    return sorted(opened.get(who, set()) - others)


def _gil(seen: Sampled, who: Key) -> Said:
    """Who holds the GIL, if that is often another thread than the main one."""
    profile = next(iter(seen.profiles(who, gil=True)), None)
    for place, number in _threads(profile)[:1]:
        if profile and number >= HOLDS * profile.asked > 0:
            often = f"{number} of {profile.asked} samples"
            yield LateReason.GIL, f"another thread holds the GIL: {place}, in {often}"


def _threads(profile: Profile | None) -> list[tuple[str, int]]:
    """The functions of the user's code in which other threads than the main one were, and how often."""
    found: Counter[tuple[str, str]] = Counter()
    frames: dict[tuple[str, str], Frame] = {}
    for stack, parts in stacks_of(profile, main=False) if profile else ():
        if own := own_line(stack):
            found[own.file, own.name] += sum(parts)
            frames.setdefault((own.file, own.name), own)
    return [(f"{of[1]}, {place_of(frames[of])}", number) for of, number in found.most_common(2)]


def _rate(bytes_a_second: float) -> str:
    for size, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if bytes_a_second >= size:
            return f"{bytes_a_second / size:.3g} {unit}/s"
    return "nothing" if bytes_a_second < 1 else f"{bytes_a_second:.0f} B/s"
