"""Ascend devices as npu-smi shows them: health, memory, processes. Needs no root."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from doctor.api import Capture, Fact, Run, UnreadableOutput
from doctor.facts.ascend.npu_smi_card import ELSEWHERE, NPU_SMI, TOOL
from doctor.facts.ascend.npu_smi_table import ChipRow, NpuProcess, is_box, read_box
from doctor.facts.device_tools import answered, calling, calls, complaint
from doctor.facts.key_values import pairs
from doctor.text.hostprogram import host_program

__all__ = ["NPUS", "Npu", "NpuProcess"]


@dataclass(frozen=True, slots=True)
class Npu:
    """`device` is the number N of /dev/davinciN. `codes` and `errors` are only queried if it is not OK."""

    device: int
    card: int
    chip: int
    name: str
    health: str
    bus: str
    hbm_used_mb: int
    hbm_total_mb: int
    processes: tuple[NpuProcess, ...] = ()
    codes: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()

    def full(self, idle_percent: int) -> bool:
        """Whether more of its memory is in use than an idle device needs."""
        return 100 * self.hbm_used_mb > idle_percent * self.hbm_total_mb > 0


_SECONDS = 12
_ASK = host_program(__file__, "npus.sh", calling=calling(TOOL, ELSEWHERE, _SECONDS), listing=_SECONDS - 2)
"""One call lists all devices; those that are not OK are then queried for their errors, one by one."""


def _npus(capture: Capture) -> tuple[Npu, ...]:
    answers = list(calls(capture.stdout, TOOL))
    listed = answered(next(iter(answers), None), TOOL)
    rows = read_box(listed.text)
    if not rows and not is_box(listed.text):
        raise UnreadableOutput(f"{TOOL} lists no device: {complaint(listed, TOOL)}")
    ills = {call.key: _ill(call.text) for call in answers[1:]}
    return tuple(
        Npu(
            device,
            row.card,
            row.chip or 0,
            row.name,
            row.health,
            row.bus,
            row.used_mb,
            row.total_mb,
            row.processes,
            *ills.get(f"{row.card}/{'' if row.chip is None else row.chip}", ((), ())),
        )
        for device, row in _numbered(rows)
    )


def _numbered(rows: Sequence[ChipRow]) -> list[tuple[int, ChipRow]]:
    """By the number N of /dev/davinciN: printed if cards have several chips, else the card's number."""
    single = len({row.card for row in rows}) == len(rows)
    numbered = [
        (row.physical if row.physical is not None else row.card if single else position, row)
        for position, row in enumerate(rows)
    ]
    return sorted(numbered, key=lambda pair: pair[0])


def _ill(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    codes: list[str] = []
    errors: list[str] = []
    for key, value in pairs(text):
        if key == "Error Code":
            codes += re.findall(r"\b(?:0x)?[0-9A-Fa-f]{8}\b", value)[:32]
        elif key == "Error Information" and value not in ("", "NA"):
            errors.append(value[:300])
    return tuple(codes[:32]), tuple(errors[:32])


NPUS: Fact[tuple[Npu, ...]] = Fact(
    "npus", Run(_ASK), _npus, timeout=_SECONDS, cap=200_000, partial=True, group=NPU_SMI
)
