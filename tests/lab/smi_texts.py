"""What npu-smi prints for a whole host, product by product. Pure: a file's name -> its text.

Files are named by the kind of question. The answer for one card or chip follows a line such as
`@ 3` or `@ 3.0`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from tests.support.cases import from_cases

from .npu_products import Product
from .smi_tables import Chip, Chips, table, text

USAGE = from_cases(__file__, "USAGE", str)

_ECC = from_cases(__file__, "_ECC", tuple[str, ...])
_ROWS = from_cases(__file__, "_ROWS", dict[str, dict[str, str]])
"""The names and values of an answer; those of the first product may differ."""

Pairs = Iterable[tuple[str, object]]
Said = Callable[[Product, int, Chips], str]
"""The answers about some chips of one card."""


def texts(product: Product, host: int, chips: Chips) -> dict[str, str]:
    """Every file of one host; hosts are numbered from 1."""
    cards: dict[int, dict[int, Chip]] = {}
    for device, chip in chips.items():
        cards.setdefault(product.card(device)[0], {})[device] = chip
    files = {
        "cards": " ".join(map(str, cards)) + "\n",
        "info": table(product, chips),
        "l": _list(product, list(cards)),
        "m": _map(product, chips),
        "usage": USAGE,
        "version": f"npu-smi version: {product.driver}\n",
    }
    if product.name == "atlas-a2":
        files["topo"] = _topology(list(chips))
    if product.name == "atlas-a3":
        files["spod-info"] = "".join(
            f"@ {card}.{product.card(device)[1]}\n{_super_pod(host, device)}"
            for card, own in cards.items()
            for device in own
        )
    files["board"] = _parts(_board, _chip_board, product, cards)
    for kind, said in (("health", _health), ("ecc", _ecc), ("usages", _usages), ("common", _common)):
        files[kind] = _parts(said, said, product, cards)
    files["proc-mem"] = _parts(_memory, _memory, product, cards)
    return files


def _parts(of_card: Said, of_chip: Said, product: Product, cards: Mapping[int, Mapping[int, Chip]]) -> str:
    """The answers for every card and chip, each below its number."""
    shown = ""
    for card, chips in cards.items():
        shown += f"@ {card}\n{of_card(product, card, chips)}"
        for device, chip in chips.items():
            shown += f"@ {card}.{product.card(device)[1]}\n{of_chip(product, card, {device: chip})}"
    return shown


def _pairs(pairs: Pairs, indent: str = "\t", width: int = 31) -> str:
    return text(f"{indent}{key:<{width}}: {value}" for key, value in pairs)


def _list(product: Product, cards: Sequence[int]) -> str:
    indent = " " if product.name == "atlas-950" else "\t"
    shown = _pairs([("Total Count", len(cards))], indent)
    for card in cards:
        more: Pairs = [("Chip Count", product.chips)]
        if product.name == "atlas-950":
            more = [("Product Name", "A5 PCIe Card"), ("Serial Number", f"IT23HMDA{card:07}")]
        shown += "\n" + _pairs([("NPU ID", card), *more], indent)
    return shown


def _map(product: Product, chips: Chips) -> str:
    if product.name == "atlas-950":
        rows = [("NPU ID", "Slot ID", "Chip ID", "Chip Phy-ID", "Chip Name")]
        rows += [(str(device), str(device), "0", str(device), product.chip) for device in chips]
        return text(f"{a:<16}{b:<17}{c:<17}{d:<21}{e:<29}" for a, b, c, d, e in rows)
    several = product.chips > 1
    name = product.chip if several else f"Ascend {product.chip}"
    cells = [["NPU ID", "Chip ID", "Chip Logic ID", *(["Chip Phy-ID"] if several else []), "Chip Name"]]
    for logical, device in enumerate(chips):
        card, number = product.card(device)
        physical = [str(device)] if several else []
        cells.append([str(card), str(number), str(logical), *physical, name])
        if product.modern and number == product.chips - 1:
            cells.append([str(card), str(product.chips), *["-"] * (len(physical) + 1), "Mcu"])
    return text("\t" + "".join(f"{cell:<31}" for cell in row[:-1]) + row[-1] for row in cells)


def _board(product: Product, card: int, chips: Chips) -> str:
    return _rows("board", product, card, min(chips))


def _chip_board(product: Product, card: int, chips: Chips) -> str:
    return _rows("chip board", product, card, min(chips))


def _rows(answer: str, product: Product, card: int, device: int, chip: Chip | None = None) -> str:
    """The rows of an answer, filled in."""
    known = {"product": product, "card": card, "device": device, "number": product.card(device)[1]}
    known |= {"bus": product.bus(device), "vendor": product.pci[:4].upper(), "pci": product.pci[4:].upper()}
    if chip is not None:
        known |= {"chip": chip, "hbm": 100 * chip.hbm_mb // product.hbm_mb}
        known["mhz"] = chip.mhz or (800 if product.modern else 900)
    first = f"{answer} of the first"
    rows = _ROWS[answer if product.modern or first not in _ROWS else first]
    return _pairs((name, value.format_map(known)) for name, value in rows.items())


def _health(product: Product, card: int, chips: Chips) -> str:
    shown = ""
    for chip in chips.values():
        head: Pairs = [("Health Status", chip.health)]
        if product.name == "atlas-950":
            head = [("NPU ID", card), ("Health", chip.health)]
        first, *others = chip.errors or ("NA",)
        code = " ".join(chip.codes) or "NA"
        shown += _pairs([*head, ("Error Code", code), ("Error Information", first)])
        shown += "".join("\n" + _pairs([("", other)]) for other in others)
    return shown


def _ecc(product: Product, card: int, chips: Chips) -> str:
    counts: list[tuple[str, object]] = []
    for device, chip in chips.items():
        counts += [(name, chip.ecc.get(name, 0)) for name in _ECC]
        counts += [("Chip ID", product.card(device)[1])]
    head = [("NPU ID", card), ("Chip Count", len(chips))]
    return _pairs(head, "", 41) + "\n" + _pairs(counts, "", 41)


def _usages(product: Product, card: int, chips: Chips) -> str:
    shown = _pairs([("NPU ID", card), ("Chip Count", len(chips))])
    for device, chip in chips.items():
        shown += "\n" + _rows("usages", product, card, device, chip)
    return shown


def _common(product: Product, card: int, chips: Chips) -> str:
    shown = _pairs([("NPU ID", card), ("Chip Count", len(chips))])
    for device, chip in chips.items():
        shown += "\n" if product.modern else ""
        shown += _rows("common", product, card, device, chip)
    if product.modern:
        shown += "\n" + _pairs([("Chip Name", "mcu"), ("Temperature(C)", 38)])
    return shown


def _memory(product: Product, card: int, chips: Chips) -> str:
    del product
    running = [
        f"\tProcess id:{each.pid}  Process name:{each.name}        Process memory(MB):{each.memory_mb}"
        for chip in chips.values()
        for each in chip.processes
    ]
    return _pairs([("NPU ID", card)]) + text(running)


def _topology(devices: Sequence[int]) -> str:
    head = "\t   " + "".join(f"{f'NPU{device}':<11}" for device in devices) + "CPU Affinity"
    rows = []
    for device in devices:
        links = "".join(f"{'X' if other == device else 'HCCS':<11}" for other in devices)
        rows.append(f"{f'NPU{device}':<11}{links}{24 * (device // 2)}-{24 * (device // 2) + 23}")
    legend = ["X    = Self", "HCCS = Connection traversing HCCS.", "NA   = Unknown relationship."]
    return text([head, *rows, "", "Legend:", "", *(f"  {line}" for line in legend)])


def _super_pod(host: int, device: int) -> str:
    server = host - 1
    pod = "Super Pod Size : 384\nSuper Pod ID : 0\n"
    return f"SDID : {server << 22 | device}\n{pod}Server Index : {server}\n"
