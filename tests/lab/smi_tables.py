"""The tables of `npu-smi info`, and what npu-smi reports about one device. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from .npu_products import Product

SHOWN_PROCESSES = 8
"""npu-smi shows no more processes of a chip than this."""

_LINE = f"+{'-' * 27}+{'-' * 15}+{'-' * 52}+"
_FULL = f"+{'-' * 96}+"
_HEAD = ("Process id", "Process name", "Process memory(MB)")


@dataclass(frozen=True, slots=True)
class Process:
    """A process on a device; its name is blank if it runs in another container."""

    name: str
    pid: int
    memory_mb: int


@dataclass(frozen=True, slots=True)
class Chip:
    """What npu-smi reports about one device; `ecc` holds the counts that are not zero."""

    health: str = "OK"
    codes: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    processes: tuple[Process, ...] = ()
    idle_hbm_mb: int = 3128
    power: float = 90.0
    temperature: int = 46
    mhz: int | None = None
    """The clock of its cores; None: that of an idle chip."""
    busy: int | None = None
    ecc: Mapping[str, int] = field(default_factory=dict)

    @property
    def hbm_mb(self) -> int:
        """The memory in use, by listed and by other processes."""
        return self.idle_hbm_mb + sum(process.memory_mb for process in self.processes)

    @property
    def load(self) -> int:
        """The load in per cent."""
        if self.busy is not None:
            return self.busy
        return 17 if self.processes else 0


Chips = Mapping[int, Chip]
"""By device; a card that dropped off is not among them."""


def table(product: Product, chips: Chips) -> str:
    """The output of `npu-smi info`."""
    return _table_950(product, chips) if product.name == "atlas-950" else _table(product, chips)


def _table(product: Product, chips: Chips) -> str:
    lines = [
        _FULL,
        f"| {f'npu-smi {product.driver}':<32} Version: {product.driver:<53}|",
        _LINE,
        _row("NPU   Name", "Health", f"{'Power(W)':<12}{'Temp(C)':<18}Hugepages-Usage(page)"),
        _row(
            "Chip  Phy-ID" if product.chips > 1 else "Chip",
            "Bus-Id",
            f"{'AICore(%)':<12}{'Memory-Usage(MB)':<18}HBM-Usage(MB)",
        ),
    ]
    for position, (device, chip) in enumerate(chips.items()):
        card, number = product.card(device)
        lines.append(_FULL if number and position else _double(_LINE))
        place = f"{number:<6}{device}" if product.chips > 1 else str(number)
        power = "-" if number else f"{chip.power:.1f}"
        heat = f"{power:<12}{chip.temperature:<18}{_used(0, 0)}"
        memory = f"{chip.load:<12}{_used(0, 0):<18}{_used(chip.hbm_mb, product.hbm_mb)}"
        lines.append(_row(f"{card:<6}{product.chip}", chip.health, heat))
        lines.append(_row(place, product.bus(device), memory))
    lines += [_double(_LINE), _LINE, _process("NPU     Chip", *_HEAD)]
    for card in dict.fromkeys(product.card(device)[0] for device in chips):
        on_card = ((device, chip) for device, chip in chips.items() if product.card(device)[0] == card)
        running = [
            _process(f"{card:<8}{product.card(device)[1]}", *_shown(each))
            for device, chip in on_card
            for each in chip.processes[:SHOWN_PROCESSES]
        ]
        lines.append(_double(_LINE))
        lines += running or [f"| {f'No running processes found in NPU {card}':<95}|"]
    return text([*lines, _double(_LINE)])


def _table_950(product: Product, chips: Chips) -> str:
    line = f"{_LINE[:-1]}-+"
    cells = _double(f"+{'-' * 8}+{'-' * 18}+{'-' * 15}+{'-' * 53}+")

    def row(number: object, name: str, health: str, rest: str) -> str:
        return f"| {number:<7}| {name:<17}| {health:<14}| {rest:<52}|"

    lines = [
        f"{_FULL[:-1]}-+",
        f"| {f'npu-smi {product.driver}':<39} Version: {product.driver:<47}|",
        line,
        row("NPU ID", "Name", "Health", f"{'Power(W)':<12}{'Temp(C)':<18}Hugepages-Usage(page)"),
        row("", "", "Bus-Id", f"{'NPU Util(%)':<12}{'Memory-Usage(MB)':<18}HBM-Usage(MB)"),
        cells,
    ]
    for device, chip in chips.items():
        heat = f"{chip.power:<12.1f}{chip.temperature:<18}{0:<6}/ 0"
        memory = f"{chip.load:<12}{_used(0, 0):<18}{chip.hbm_mb:<6}/ {product.hbm_mb}"
        lines.append(row(device, product.chip, chip.health, heat))
        lines += [row("", "", product.bus(device), memory), cells]
    lines += [line, _process("NPU ID", *_HEAD, 25)]
    for device, chip in chips.items():
        running = [_process(str(device), *_shown(each), 25) for each in chip.processes[:SHOWN_PROCESSES]]
        lines.append(_double(line))
        lines += running or [f"| {f'No running processes found in NPU {device}':<96}|"]
    return text([*lines, _double(line)])


def text(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _row(place: str, state: str, numbers: str) -> str:
    return f"| {place:<26}| {state:<14}| {numbers:<51}|"


def _process(place: str, pid: str, name: str, memory: str, width: int = 24) -> str:
    return f"| {place:<26}| {pid:<14}| {name:<25}| {memory:<{width}}|"


def _shown(process: Process) -> tuple[str, str, str]:
    return str(process.pid), process.name, str(process.memory_mb)


def _used(used: int, total: int) -> str:
    return f"{used:<5}/ {total}"


def _double(line: str) -> str:
    return line.replace("-", "=")
