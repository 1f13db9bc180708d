"""The boxes of `npu-smi info`: two lines per chip, then the processes. Columns are found by their names."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from doctor.facts.key_values import cells, count


@dataclass(frozen=True, slots=True)
class NpuProcess:
    """A process on a device; the name is blank if it runs in another container."""

    pid: int
    name: str
    memory_mb: int


@dataclass(frozen=True, slots=True)
class ChipRow:
    """A chip. `chip` and `physical` (the number N of /dev/davinciN) are None if they are not printed."""

    card: int
    chip: int | None
    physical: int | None
    name: str
    health: str
    bus: str
    used_mb: int
    total_mb: int
    processes: tuple[NpuProcess, ...] = ()


@dataclass(slots=True)
class _Header:
    """The cells that hold the values, and which of the pairs `used / total` is that of the HBM."""

    health: int
    name: int
    usage: int = -1
    which: int = 0
    numbered: bool = False


def read_box(text: str) -> tuple[ChipRow, ...]:
    rows: list[ChipRow] = []
    processes: dict[tuple[int, int | None], list[NpuProcess]] = {}
    header: _Header | None = None
    above: list[str] = []
    listing = False
    for line in text.splitlines():
        if not line.lstrip().startswith("|"):
            continue
        row = cells(line)
        if "Process id" in row:
            listing = True
        elif listing:
            _note(row, processes)
        elif "Health" in row:
            # "NPU   Name" is one cell, "NPU ID | Name" is two.
            header = _Header(row.index("Health"), row.index("Name") if "Name" in row else 0)
        elif header and header.usage < 0:
            _complete(header, row)
        elif header and above and _usages(row, header):
            found = _row(above, row, header)
            rows += [found] if found else []
            above = []
        elif header and len(row) > header.health:
            above = row
    return tuple(replace(row, processes=tuple(processes.get((row.card, row.chip), ()))) for row in rows)


def is_box(text: str) -> bool:
    """Whether the text is the table of chips, even an empty one, and not a message in its place."""
    lines = (cells(line) for line in text.splitlines() if line.lstrip().startswith("|"))
    return any("Health" in row for row in lines)


def _complete(header: _Header, row: Sequence[str]) -> None:
    """Read the second line of the header, which names the memory columns."""
    for position, cell in enumerate(row):
        names = re.findall(r"(\w{1,20})-Usage", cell)
        if names:
            header.usage = position
            header.which = names.index("HBM") if "HBM" in names else 0
            header.numbered = row[0].split()[1:] in (["Phy-ID"], ["Device"])


def _usages(row: Sequence[str], header: _Header) -> list[tuple[str, str]]:
    if len(row) <= header.usage:
        return []
    return re.findall(r"([0-9]{1,9}) {0,20}/ {0,20}([0-9]{1,9})", row[header.usage])


def _row(above: Sequence[str], below: Sequence[str], header: _Header) -> ChipRow | None:
    card, *rest = above[0].split() or [""]
    chip, *physical = below[0].split() or [""]
    usages = _usages(below, header)
    if count(card) is None or len(usages) <= header.which or len(below) <= header.health:
        return None
    used, total = usages[header.which]
    return ChipRow(
        int(card),
        count(chip),
        count(physical[0]) if header.numbered and physical else None,
        (above[header.name] if header.name else " ".join(rest))[:80],
        above[header.health][:40],
        below[header.health][:40],
        int(used),
        int(total),
    )


def _note(row: Sequence[str], processes: dict[tuple[int, int | None], list[NpuProcess]]) -> None:
    if len(row) < 4:
        return
    pid, where = count(row[1]), [count(word) for word in row[0].split()[:2]]
    if pid is None or not where or where[0] is None or where[-1] is None:
        return
    chip = where[1] if len(where) > 1 else None
    processes.setdefault((where[0], chip), []).append(NpuProcess(pid, row[2][:80], count(row[3]) or 0))
