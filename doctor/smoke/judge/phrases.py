"""Texts that the judges share: calls, phases, process states, stacks."""

import re
from collections.abc import Callable, Container, Iterable, Iterator
from itertools import islice

from doctor.model import Evidence
from doctor.smoke.judge.stopped_cell import EndedCell
from doctor.smoke.onhost.page import JOINING
from doctor.smoke.onhost.shape import ScheduledCall
from doctor.smoke.result import RankOutcome, Sample
from doctor.text.hostprogram import sections

_SAID = sections(__file__, "phrases.txt")
_DOING, _STATES, MISMATCHES = _SAID["phases"], _SAID["states"], _SAID["mismatches"]
SHOWN = 3
_FRAMES = 8
_LINE = 300


def call_words(entry: ScheduledCall) -> str:
    """A collective of the schedule, with its number in its group."""
    call = entry.call
    return of_phase(_call(call.group, call.op, entry.seq, call.dtype, call.bytes), entry.phase, call.step)


def shown_words(sample: Sample) -> str:
    """The collective that a page shows. A rank that has left it may already be in another phase or step."""
    name = _call(sample.group, sample.op, sample.seq, sample.dtype, sample.bytes)
    return name if not sample.inside else of_phase(name, sample.phase, sample.step)


def _call(group: str, op: str, seq: int, dtype: str, size: int) -> str:
    return f"{group} {op} {seq} ({dtype}, {size} bytes)"


def of_phase(name: str, phase: str, step: int) -> str:
    return f"{name} of training step {step}" if phase == "train" else f"{name} of the {phase} phase"


def doing(phase: str, step: int) -> str:
    """Where a rank is, to follow the words "it is"."""
    if phase == "train":
        return f"in training step {step}"
    if phase == "join" and step < len(JOINING):
        return f"joining the process group ({JOINING[step]})"
    return _DOING.get(phase, f"in the {phase} phase")


def page_words(sample: Sample) -> str:
    """A whole page as a text."""
    place = f"phase {sample.phase}" + (f", step {sample.step}" if sample.phase == "train" else "")
    if sample.position == 0:
        return f"{place}; no collective entered yet"
    last = _call(sample.group, sample.op, sample.seq, sample.dtype, sample.bytes)
    if sample.inside:
        return f"{place}; inside {last}, its collective number {sample.position}"
    return f"{place}; outside, after {last}, its collective number {sample.position}"


def state_words(seen: RankOutcome) -> str:
    """What the process does while its page stands still, to follow the words "its process"."""
    state = _STATES.get(seen.state, "is in an unknown state")
    if seen.cpu is None or seen.state in ("T", "t", "Z", "X"):
        return state
    if seen.cpu >= 0.05:
        return f"{state} and burnt {seen.cpu:.2f} s of CPU between two looks at it"
    if seen.state == "R":
        return f"{state} or waits for its turn on a processor"
    return f"{state} and burns no CPU"


def evidence(seen: RankOutcome) -> list[Evidence]:
    """What is known about one rank: its page, its process, its stack and the report of its backend."""
    found: list[Evidence] = []
    name = f"rank {seen.rank}"
    if seen.samples:
        found.append(Evidence(f"page of {name}", page_words(seen.samples[-1])))
    if seen.exit is None and seen.state:
        pid = f" {seen.pid}" if seen.pid else ""
        found.append(Evidence(f"process{pid} of {name}", f"it {state_words(seen)}"))
    if frames := top_of(seen.stack):
        found.append(Evidence(f"stack of {name}", frames))
    if seen.backend.strip():
        found.append(Evidence(f"backend of {name}", last_lines(seen.backend, 20)))
    return found


def evidence_of(ranks: Iterable[RankOutcome]) -> tuple[Evidence, ...]:
    """The evidence for the first few of these ranks."""
    return tuple(each for seen in islice(ranks, SHOWN) for each in evidence(seen))


def consequences(
    cell: EndedCell, guilty: Container[int], ending: Callable[[RankOutcome], str]
) -> Iterator[Evidence]:
    """Evidence for ranks that died because of the guilty ones, and how."""
    for seen in islice((seen for seen in cell.fallen if seen.rank not in guilty), SHOWN):
        yield Evidence(f"rank {seen.rank}, in consequence", one_line(ending(seen)))


def top_of(stack: str) -> str:
    """The innermost frames of the main thread in the output of faulthandler or py-spy."""
    lines = [line[:_LINE] for line in stack.splitlines()[:2000] if line.strip()]
    heads = [n for n, line in enumerate(lines) if re.match(r"(?:Current thread|Thread) ", line)]
    # faulthandler shows the main thread last, unless it is the one that got the signal.
    start = next((n for n in heads if lines[n].startswith("Current") or "MainThread" in lines[n]), None)
    if start is None:
        start = heads[-1] if heads else 0
    frames: list[str] = []
    for line in lines[start + 1 if heads else start :]:
        if re.match(r"(?:Current thread|Thread) ", line):
            break
        frames.append(line.strip())
    return "\n".join(frames[:_FRAMES])


def one_line(text: str, most: int = 200) -> str:
    """The text on one line, cut at `most` characters."""
    line = " ".join(text[: 4 * most].split())
    return line if len(line) <= most else line[: most - 1] + "…"


def last_lines(text: str, most: int = 5) -> str:
    return "\n".join(line[:_LINE] for line in text.strip().splitlines()[-most:])
