"""Bundled recordings, and the progress that their runs showed."""

import gzip
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import msgspec

from doctor.errors import UsageError, suggest
from doctor.exam.progress import ProgressLine
from doctor.recording import Recording, decoded
from doctor.smoke.headway import SMOKE, training
from doctor.stage import Stage
from doctor.text.hostprogram import table
from doctor.text.language import Language

FOLDER = Path(__file__).parent.parent / "demos"


@dataclass(frozen=True, slots=True)
class Demo:
    kind: str
    """What its file holds: a `run`, what `hang` or `slow` saw, or what a terminal showed (`cast`)."""
    title: str
    command: str
    """The command that made the recording."""


ALL_DEMOS: Mapping[str, Demo] = {name: Demo(*row) for name, *row in table(__file__, "demos.txt")}
"""The first one is shown if none is named."""
DEMOS, HANGS, SLOWS, TRANSCRIPTS = (
    {name: demo for name, demo in ALL_DEMOS.items() if demo.kind == kind}
    for kind in ("run", "hang", "slow", "cast")
)
LASTS, TRANSCRIPT_LASTS = 4.0, 16.0
"""Seconds that a demo plays if somebody watches."""
LONGEST_PAUSE = 3.0
"""The longest pause of a transcript, in seconds, before all are shortened alike."""
_BEFORE_ERASED = re.compile(r"[^\n]*\x1b\[J")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def load_demo(name: str) -> Recording:
    if name not in DEMOS:
        hint = suggest(name, ALL_DEMOS).capitalize()
        known = ", ".join(ALL_DEMOS)
        raise UsageError(f"There is no demo {name[:60]!r}. {hint}".strip(), f"There are {known}.")
    path = FOLDER / f"{name}.run.json.gz"
    return decoded(gzip.decompress(path.read_bytes()), path)


def evidence_of(name: str) -> Path:
    """The file with what `doctor hang` or `doctor slow` saw."""
    return FOLDER / f"{name}.{ALL_DEMOS[name].kind}.json.gz"


def transcript_of(name: str, lang: Language) -> Path:
    """The file with what a terminal showed: an asciicast with the real times."""
    return FOLDER / f"{name}.{lang.value}.cast.gz"


class CastHead(msgspec.Struct, frozen=True):
    width: int


@dataclass(frozen=True, slots=True)
class Transcript:
    width: int
    pieces: Sequence[tuple[float, str]]
    """What the terminal was sent, and after how many seconds."""

    @property
    def text(self) -> str:
        """What stays on the screen, without colours."""
        text = "".join(piece for _, piece in self.pieces).replace("\r\n", "\n")
        return _COLOURS.sub("", _BEFORE_ERASED.sub("", text))

    def pauses(self) -> Sequence[float]:
        """The pause before each piece, so that all take TRANSCRIPT_LASTS."""
        times = [0.0, *(at for at, _ in self.pieces)]
        pauses = [min(after - before, LONGEST_PAUSE) for before, after in pairwise(times)]
        return [pause * TRANSCRIPT_LASTS / sum(pauses) for pause in pauses]


def load_transcript(name: str, lang: Language) -> Transcript:
    head, *events = gzip.decompress(transcript_of(name, lang).read_bytes()).splitlines()
    pieces = [msgspec.json.decode(event, type=tuple[float, str, str]) for event in events]
    return Transcript(
        msgspec.json.decode(head, type=CastHead).width, [(at, piece) for at, _, piece in pieces]
    )


def play_transcript(played: Transcript, show: Callable[[str], object]) -> None:
    for pause, (_, piece) in zip(played.pauses(), played.pieces, strict=True):
        time.sleep(pause)
        show(piece)


def play(recorded: Recording, line: ProgressLine) -> None:
    """Play the progress on a terminal only: a log gets the report at once."""
    stages = list(stages_of(recorded)) if line.live else []
    try:
        for stage in stages:
            line(stage)
            time.sleep(LASTS / len(stages))
    finally:
        line.clear()


def stages_of(recorded: Recording) -> Iterator[Stage]:
    """The stages of the run in order, without the times that they took."""
    hosts = [host.name for host in recorded.hosts]
    for done in range(len(hosts) + 1):
        yield Stage("hosts", f"{done}/{len(hosts)} answered", done, len(hosts), waiting=hosts[done:])
    links = len(recorded.mesh.links) if recorded.mesh else 0
    for done in dict.fromkeys((links // 3, links * 2 // 3, links)):
        yield Stage("network", f"{done}/{links} connections", done, links)
    for run in recorded.smoke:
        yield Stage(SMOKE, f"starting {len(run.plan.seats)} ranks", of=run.plan.steps)
        for step in run.ranks[0].steps[::2]:
            yield training(run.plan, step.step + 1, step.loss)
