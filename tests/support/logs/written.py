"""Logs written by hand: files of entries, each with its second, its meaning and its writer."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from doctor.logs.model import Form, LogFile, LogLine, Logs, Party, Role, Sighting, Symptom

T0 = 1_795_000_000.0
NOBODY = Party()


def symptom(
    id: str,
    role: Role = Role.CONSEQUENCE,
    title: str = "",
    explains: Sequence[str] = (),
    checks: Sequence[str] = (),
    needs: str = "",
) -> Symptom:
    says = title or id
    return Symptom(
        id, says, "test", role, ((id,),), explains=tuple(explains), needs=needs, checks=tuple(checks)
    )


@dataclass(frozen=True)
class Entry:
    """One line. `means`: its symptom; a line without one is progress, odd, or nothing."""

    at: float
    text: str
    means: Symptom | None = None
    form: Form = Form.TORCH
    who: Party = NOBODY
    taken: dict[str, str] = field(default_factory=dict)
    progress: bool = False
    odd: bool = False
    timed: bool = True


@dataclass(frozen=True)
class File:
    name: str
    entries: tuple[Entry, ...]
    who: Party = NOBODY
    world: int | None = None
    ranks: tuple[int, ...] = ()

    def line(self, number: int) -> LogLine:
        entry = self.entries[number - 1]
        at = T0 + entry.at if entry.timed else None
        return LogLine(self.name, number, entry.text, entry.form, _both(entry.who, self.who), at)

    @property
    def shifted_host(self) -> str | None:
        return self.who.host or next((each.who.host for each in self.entries if each.who.host), None)


def _both(who: Party, file: Party) -> Party:
    rank = who.rank if who.rank is not None else file.rank
    return replace(
        who, rank=rank, host=who.host or file.host, pid=who.pid if who.pid is not None else file.pid
    )


def logs(files: Iterable[File]) -> Logs:
    """The logs as the reader returns them."""
    read: list[LogFile] = []
    sightings: list[Sighting] = []
    for file in files:
        seen: dict[tuple[str, int | None, int | None, str], Sighting] = {}
        last_steps: dict[int | None, LogLine] = {}
        odd = []
        for number, entry in enumerate(file.entries, 1):
            line = file.line(number)
            if entry.progress:
                last_steps[line.who.rank] = line
            if entry.odd:
                odd.append(line)
            if entry.means is None:
                continue
            key = (entry.means.id, line.who.rank, line.who.pid, str(sorted(entry.taken.items())))
            old = seen.get(key)
            if old is None:
                seen[key] = Sighting(entry.means, line, line, 1, entry.taken)
            else:
                seen[key] = replace(old, last=line, count=old.count + 1)
        sightings += seen.values()
        lines = [file.line(number) for number in range(1, len(file.entries) + 1)]
        times = [line.at for line in lines if line.at is not None]
        ranks = {
            line.who.rank for line in lines if line.who.rank is not None and line.form is not Form.ELASTIC
        }
        read.append(
            LogFile(
                file.name,
                size=100 * len(lines),
                lines=len(lines),
                forms=tuple(dict.fromkeys(line.form for line in lines)),
                who=file.who,
                ranks=tuple(sorted(ranks | {*file.ranks})),
                world=file.world,
                first_at=min(times, default=None),
                last_at=max(times, default=None),
                last=lines[-1] if lines else None,
                progress=tuple(last_steps.values()),
                odd=tuple(odd),
            )
        )
    return Logs(tuple(read), tuple(sightings))


def shifted(files: Iterable[File], host: str, seconds: float) -> list[File]:
    """The same logs, if the clock of one host was wrong all the time."""
    return [
        replace(file, entries=tuple(replace(each, at=each.at + seconds) for each in file.entries))
        if file.shifted_host == host
        else file
        for file in files
    ]
