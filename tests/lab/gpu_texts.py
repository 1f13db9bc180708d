"""What nvidia-smi prints on a host with NVIDIA H100 GPUs. Pure: a file's name -> its text."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tests.support.cases import from_cases

MODEL = "NVIDIA H100 80GB HBM3"
PCI = "10de2330"
SWITCH_PCI = "10de22a3"
MEMORY = 81559
LINKS = 18

VERSION = from_cases(__file__, "VERSION", str)
NO_DRIVER = from_cases(__file__, "NO_DRIVER", str)
HEAD = from_cases(__file__, "HEAD", str)
PROCESSES = from_cases(__file__, "PROCESSES", str)
RULE = f"+{'-' * 41}+{'-' * 24}+{'-' * 22}+"

FIELDS = from_cases(__file__, "FIELDS", dict[str, tuple[str, str]])
"""The fields that can be queried, with the unit in their title and their healthy value."""
APPS = from_cases(__file__, "APPS", dict[str, str])


@dataclass(frozen=True, slots=True)
class App:
    """A process that uses memory of a GPU."""

    name: str
    pid: int
    memory_mb: int


def uuid(host: int, index: int) -> str:
    return f"GPU-{host:08x}-6e53-a130-43b0-{index:012x}"


def bus(index: int) -> str:
    return f"00000000:{0x19 + 16 * index:02X}:00.0"


def healthy(host: int, index: int, count: int) -> dict[str, str]:
    """The value of every field."""
    own = {"index": str(index), "count": str(count)}
    own |= dict.fromkeys(("uuid", "gpu_uuid"), uuid(host, index))
    own |= dict.fromkeys(("pci.bus_id", "gpu_bus_id"), bus(index))
    return {field: own.get(field, value) for field, (_, value) in FIELDS.items()}


def gpus(rows: Sequence[Mapping[str, str] | str], without: Iterable[str] = ()) -> str:
    """The table behind --query-gpu; a row that is a text is printed as it is."""
    known = {field: unit for field, (unit, _) in FIELDS.items() if field not in set(without)}
    shown = [f"!{row}" if isinstance(row, str) else "\t".join(row[field] for field in known) for row in rows]
    return _table(known, shown)


def apps(rows: Iterable[tuple[Mapping[str, str], App]]) -> str:
    """The table behind --query-compute-apps."""
    shown = []
    for gpu, app in rows:
        used = str(app.memory_mb)
        own = {"pid": str(app.pid), "process_name": app.name, "used_gpu_memory": used, "used_memory": used}
        shown.append("\t".join(own.get(field) or gpu[field] for field in APPS))
    return _table(APPS, shown)


def _table(columns: Mapping[str, str], rows: Iterable[str]) -> str:
    titles = "\t".join(f"{name} [{unit}]" if unit else name for name, unit in columns.items())
    return "".join(f"{line}\n" for line in ("\t".join(columns), titles, *rows))


def head(gpu: Mapping[str, str]) -> str:
    return f"GPU {gpu['index']}: {gpu['name']} (UUID: {gpu['uuid']})\n"


def nvlink(rows: Iterable[tuple[Mapping[str, str], frozenset[int]]]) -> str:
    """The output of `nvlink --status`; each GPU comes with its links that are down."""
    shown = ""
    for gpu, down in rows:
        shown += head(gpu)
        if len(down) == LINKS:
            shown += "NVML: Unable to retrieve NVLink information as all links are inActive\n"
            continue
        states = ("<inactive>" if link in down else "26.562 GB/s" for link in range(LINKS))
        shown += "".join(f"\t Link {link}: {state}\n" for link, state in enumerate(states))
    return shown


def query(gpu: Mapping[str, str], replays: str) -> str:
    """The part of `nvidia-smi -q` that is about its PCIe link."""
    return (
        f"GPU {gpu['pci.bus_id']}\n    PCI\n        Bus Id                            : {gpu['pci.bus_id']}\n"
        f"        Replays Since Reset               : {replays}\n"
        "        Replay Number Rollovers           : 0\n"
    )


def link_errors(gpu: Mapping[str, str], replays: str) -> str:
    """The output of `nvlink -e`: errors of one link, at most."""
    return head(gpu) + "".join(
        f"\t Link {link}: Replay Errors: {replays if link == 7 else 0}\n"
        f"\t Link {link}: Recovery Errors: 0\n\t Link {link}: CRC Errors: 0\n\n"
        for link in range(LINKS)
    )


def topology(indexes: Sequence[int], joined: Mapping[tuple[int, int], str]) -> str:
    """The output of `topo -m`; `joined` holds the pairs without a full set of NVLinks."""
    names = [f"GPU{index}" for index in indexes]
    shown = "\t\033[4m" + "\t".join([*names, "CPU Affinity", "NUMA Affinity", "GPU NUMA ID"]) + "\033[0m\n"
    for index in indexes:
        cells = [
            " X " if other == index else joined.get((min(index, other), max(index, other)), f"NV{LINKS}")
            for other in indexes
        ]
        near = ["0-51", "0"] if index < 4 else ["52-103", "1"]
        shown += "\t".join([f"GPU{index}", *cells, *near]) + "\t\tN/A\n"
    legend = ["X    = Self", "NV#  = Connection traversing a bonded set of # NVLinks"]
    return shown + "\nLegend:\n\n" + "".join(f"  {line}\n" for line in legend)


def plain(rows: Iterable[tuple[Mapping[str, str], Sequence[App]]]) -> str:
    """The output of nvidia-smi without arguments."""
    lines, running = HEAD.splitlines(), []
    for gpu, own in rows:
        power = f"{_round(gpu['power.draw'])}W / {_round(gpu['power.limit']):>4}W"
        used = f"{_round(gpu['memory.used'])}MiB / {_round(gpu['memory.total']):>6}MiB"
        load = f"{_round(gpu['utilization.gpu'])}%"
        heat = f"{_round(gpu['temperature.gpu'])}C"
        errors = gpu["ecc.errors.uncorrected.volatile.total"]
        name = f"{gpu['index']:>3}  {gpu['name']:<28}{'On':>6}"
        state = f"{'N/A':<6}{heat:<7}{_round(gpu['pstate'], 'P0'):<4}{power:>22}"
        mode = _round(gpu["compute_mode"], "Default")
        lines += [
            f"| {name} |   {gpu['pci.bus_id']} Off | {errors:>20} |",
            f"| {state} | {used:>22} | {load:>7}{mode:>13} |",
            f"|{'':41}|{'':24}| {gpu['mig.mode.current']:>20} |",
            RULE,
        ]
        for app in own:
            place = f"{gpu['index']:>4}   N/A  N/A {app.pid:>9}      C   {app.name}"
            running.append(f"| {place:<69}{f'{app.memory_mb}MiB':>18} |")
    lines += [
        "",
        *PROCESSES.splitlines(),
        *(running or [f"| {' No running processes found':<88}|"]),
        f"+{'-' * 89}+",
    ]
    return "".join(f"{line}\n" for line in lines)


def _round(value: str, *words: str) -> str:
    """Shorten a value for the table; a value that is neither a number nor one of `words` is an error."""
    if value in words:
        return value
    return f"{float(value):.0f}" if value.replace(".", "", 1).isdigit() else "ERR!"
