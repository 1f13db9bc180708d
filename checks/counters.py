"""Errors that are counted right now, on the bus, on links, in memory and by file servers: read twice."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from shlex import quote
from types import MappingProxyType
from typing import NamedTuple

from doctor.api import (
    AMD,
    Backend,
    Capture,
    Damage,
    Evidence,
    Fact,
    Place,
    Problem,
    Run,
    Severity,
    Skip,
    Sphere,
    Undecided,
    UnreadableOutput,
    check,
    duration,
    grouped,
    maybe,
)
from doctor.facts.amd import smi
from doctor.facts.ascend import hccn_tool
from doctor.facts.device_tools import calls
from doctor.facts.gpus import Gpus, bus_id, gpus_named
from doctor.facts.key_values import pairs
from doctor.facts.nvidia.gpus import GPUS
from doctor.facts.nvidia.nvidia_smi import asked

WAIT = 8
"""Seconds between the two readings of an exam."""
MINUTE = 60
SHOWN = 8


@dataclass(frozen=True, slots=True)
class Counts:
    """One reading: `boot` is that of the kernel, `at` the seconds since then; the counters by their names,
    such as "edac mc0", "aer DEVICE PLACE fatal", "nfs SERVER MOUNT resent".
    """

    boot: str
    at: int
    named: dict[str, int] = field(default_factory=dict)


_COUNT = re.compile(r"(\d{1,18}) (\S.{0,400})")
_BEGIN = re.compile(r"^boot ([\w-]{1,40}) (\d{1,12})$", re.MULTILINE)
_GPU = re.compile(r"GPU (?:(\d{1,4}): |(\w{4,8}:\w\w:\w\w)\.)")
_REPLAYS = re.compile(r"\s*Replays Since Reset\s*: (\d{1,15})")


def _counts(capture: Capture) -> tuple[Counts, ...]:
    """All readings, the first one first."""
    found: list[Counts] = []
    gpu = ""
    for line in capture.stdout.splitlines():
        if start := _BEGIN.fullmatch(line):
            found.append(Counts(start[1], int(start[2])))
        elif not found:
            continue
        elif named := _GPU.match(line):
            gpu = named[1] or bus_id(named[2])
        elif replays := _REPLAYS.fullmatch(line):
            found[-1].named[f"replay {gpu}"] = int(replays[1])
        elif count := _COUNT.fullmatch(line):
            name = re.sub(r"^nvlink ", f"nvlink {gpu} ", count[2])
            found[-1].named[name] = int(count[1])
    if not found:
        raise UnreadableOutput("the host shows no counters")
    return tuple(found)


def _before(name: str, read: Callable[[Capture], tuple[Counts, ...]]) -> Fact[tuple[Counts, ...]]:
    """Nothing is asked for it: what an earlier run was told is put in its place."""
    return Fact(f"{name}-before", Run(""), lambda told: read(told) if told.stdout.strip() else ())


_BOOT = r"""boot() {
  read -r b </proc/sys/kernel/random/boot_id && read -r u _ </proc/uptime && echo "boot $b ${u%.*}"
}
"""
# Of InfiniBand ports only hw_counters: a card that may not read the others writes an error into its kernel's
# log. Of PCI only devices that a job uses, and the ports above them: others count errors in peace.
_LOOK = rf"""{_BOOT}
count() {{
  boot
  s=' '
  for d in /sys/bus/pci/devices/*; do
    read -r c <"$d/class" || continue
    case $c in 0x0302*|0x0300*|0x0380*|0x12*|0x020[0-7]*|0x0108*) cd -P "$d" || continue;; *) continue; esac
    while [ -e aer_dev_fatal ]; do
      p=${{PWD##*/}}
      case $s in *" $p "*) break; esac
      s="$s$p "
      for k in correctable nonfatal fatal; do
        while read -r w v; do case $w in TOTAL*) echo "$v aer ${{d##*/}} $p $k"; esac; done <"aer_dev_$k"
      done
      cd ..
    done
  done
  for d in /sys/devices/system/edac/mc/mc[0-9]*; do
    set -- "$d"/dimm*/dimm_ce_count "$d"/rank*/dimm_ce_count
    for f in "$d/ce_count" "$@"; do
      read -r v <"$f" && f=${{f#*/mc/}} && echo "$v edac ${{f%/*}}"
    done
  done
  for f in /sys/class/infiniband/*/ports/*/hw_counters/*; do
    case ${{f##*/}} in packet_seq_err|local_ack_timeout_err|rnr_nak_retry_err|rx_icrc_encapsulated)
      p=${{f%/hw*}} d=${{f%/ports*}}
      read -r v <"$f" && echo "$v ib ${{d##*/}} ${{p##*/}} ${{f##*/}}"; esac
  done
  for d in /sys/class/net/*; do
    [ -e "$d/device" ] && read -r v <"$d/statistics/rx_crc_errors" && echo "$v net ${{d##*/}}"
  done
  m=
  while read -r a b c d e _ _ h _; do
    case $a in
    device) files; case $h in nfs*) m="$b $e" o=0 r=0 t=0 w=0; esac;;
    [A-Z]*:) case $b$c$d$h in *[!0-9]*) continue; esac
      [ -n "$m" ] && [ -n "$h" ] || continue
      o=$((o+b)) t=$((t+d)) w=$((w+h)); [ "$c" -le "$b" ] || r=$((r+c-b));;
    esac
  done </proc/self/mountstats
  files
}}
files() {{
  [ -z "$m" ] || printf '%s\n' "$o nfs $m asked" "$r nfs $m resent" "$t nfs $m unanswered" "$w nfs $m waited"
  m=
}}
{{ count; sleep {WAIT}; count; }} 2>/dev/null
:
"""
# With a cap and not slow: beside the tools of devices, not before them.
COUNTS = Fact("counts", Run(_LOOK), _counts, timeout=WAIT + 4, cap=131072)
COUNTS_BEFORE = _before("counts", _counts)

_LOOK_AT_GPUS = rf"""{_BOOT}B=600000
count() {{
  boot
  q replays -q | sed -n '/^GPU /p;/Replays Since Reset/p'
  q errors nvlink -e |
    sed -n '/^GPU /p;s/^[[:space:]]*Link \([0-9]*\): \([A-Z][A-Za-z]*\) Errors: \([0-9]*\)$/\3 nvlink \1 \2/p'
}}
count; sleep {WAIT}; count"""
GPU_COUNTS = asked("gpu-counts", 20, _counts, _LOOK_AT_GPUS)
GPU_COUNTS_BEFORE = _before("gpu-counts", _counts)


def _readings(text: str, counted: Iterable[Mapping[str, int]], tool: str) -> tuple[Counts, ...]:
    """One for each time at which a reading began, with what was counted then."""
    begun = zip(_BEGIN.findall(text), counted, strict=False)
    found = tuple(Counts(boot, int(at), dict(named)) for (boot, at), named in begun if named)
    if not found:
        raise UnreadableOutput(f"{tool} shows no counters")
    return found


_OF_AMD = {
    "replays": ("pcie", "replay_count"),
    "corrected": ("ecc", "total_correctable_count"),
    "deferred": ("ecc", "total_deferred_count"),
}
"""What amd-smi counts. Errors that were not corrected are a fault however few they are: see amd-ras."""


def _amd_counts(capture: Capture) -> tuple[Counts, ...]:
    answers = (smi.further(capture, key) for key in (smi.AMD_SMI, "again"))
    return _readings(capture.stdout, map(_of_amd, answers), smi.AMD_SMI)


def _of_amd(rows: Mapping[int, smi.Row]) -> dict[str, int]:
    return {
        f"amd {gpu} {name}": value
        for gpu, row in rows.items()
        for name, (of, key) in _OF_AMD.items()
        if (value := smi.number(smi.part(row, of).get(key))) is not None
    }


_ASK_AMD = "metric --ecc --pcie"
AMD_COUNTS = smi.asked(
    "amd-counts",
    24,
    _amd_counts,
    _ASK_AMD,
    "--showmeminfo vram",
    before=f"{_BOOT}boot",
    after="\n".join(("L=7", f"sleep {WAIT}", "boot", f"q again {_ASK_AMD} --json")),
)
AMD_COUNTS_BEFORE = _before("amd-counts", _amd_counts)

OF_NPU = {
    *("mac_rx_fcs_err_pkt_num", "mac_rx_bad_pkt_num", "mac_tx_bad_pkt_num", "roce_rx_err_pkt_num"),
    *("roce_tx_err_pkt_num", "roce_verification_err_num", "roce_new_pkt_rty_num"),
}


def _npu_counts(capture: Capture) -> tuple[Counts, ...]:
    answers = _BEGIN.split(capture.stdout)[3::3]
    return _readings(capture.stdout, map(_of_npus, answers), hccn_tool.TOOL)


def _of_npus(text: str) -> dict[str, int]:
    return {
        f"npu {call.key} {name}": int(value)
        for call in calls(text, hccn_tool.TOOL)
        for name, value in pairs(call.text)
        if name in OF_NPU and re.fullmatch(r"\d{1,18}", value)
    }


_ASK_NPUS = "-i $n -stat -g"
NPU_COUNTS = Fact(
    "npu-counts",
    Run(
        hccn_tool.asked(_ASK_NPUS, first=f"{hccn_tool.NOT_950}\n{_BOOT}boot", seconds=24)
        + f'[ -z "$c" ] || sleep {WAIT}; boot; for n in $c; do q $n {_ASK_NPUS}; done\n'
    ),
    _npu_counts,
    timeout=24,
    needs_root=True,
    cap=300_000,
    partial=True,
    group=hccn_tool.HCCN,
)
NPU_COUNTS_BEFORE = _before("npu-counts", _npu_counts)


class Row(NamedTuple):
    """A counter whose growth accuses: the pattern of its name, what that says, and of whom; by how much it
    must grow, in all and each minute; what to type; whether it is a fault.
    """

    name: str
    says: str
    of: str
    least: int
    per_minute: float
    look: str
    fatal: bool = False


_PCI = r"(\w{4,8}:\w\w:\w\w\.\w) (\w{4,8}:\w\w:\w\w\.\w)"
_RESEAT = "sudo dmesg -T | grep -iE 'aer|pcie'    # Then reseat the card, its riser or its cable."
_LOOK_AT_LINK = (
    "# Reseat the cable, then replace the cable or the transceiver; look at the port of the switch."
)
ROWS = (
    Row(f"aer {_PCI} fatal", "its PCIe link has fatal errors", "device {}", 1, 0, _RESEAT, True),
    Row(
        f"aer {_PCI} nonfatal",
        "its PCIe link has errors that are not corrected",
        "device {}",
        1,
        0,
        _RESEAT,
    ),
    Row(
        f"aer {_PCI} correctable",
        "its PCIe link has errors all the time, which are corrected",
        "device {}",
        10,
        62,
        _RESEAT,
    ),
    Row(
        r"replay (\S+)", "a GPU sends again and again what its PCIe link loses", "device {}", 10, 62, _RESEAT
    ),
    Row(
        r"nvlink (\d+) (\d+) (?:Replay|Recovery)",
        "an NVLink has errors, and sends again",
        "GPU {}",
        1,
        1,
        "nvidia-smi nvlink -e",
    ),
    Row(
        r"nvlink (\d+) (\d+) CRC",
        "an NVLink damages what it carries",
        "GPU {}",
        100,
        6000,
        "nvidia-smi nvlink -e",
    ),
    Row(
        r"amd (\d+) replays",
        "a GPU sends again and again what its PCIe link loses",
        "GPU {}",
        10,
        62,
        _RESEAT,
    ),
    Row(
        r"amd (\d+) corrected",
        "a GPU's memory has errors all the time, which are corrected",
        "GPU {}",
        10,
        1,
        "amd-smi metric --ecc",
    ),
    Row(
        r"amd (\d+) deferred",
        "a GPU's memory holds data that could not be corrected",
        "GPU {}",
        1,
        0,
        "amd-smi metric --ecc",
    ),
    Row(
        r"npu (\d+) \w+",
        "the link of an NPU damages packets, or sends them again",
        "device {}",
        10,
        10,
        "",
    ),
    Row(
        r"edac (mc\d+)(/\w+)?",
        "its memory has errors all the time, which are corrected",
        "{}{}",
        2,
        24 / 1440,
        "sudo dmesg -T | grep -i edac    # Then have the module replaced.",
    ),
    Row(
        r"ib (\S+) (\d+) \w+",
        "an InfiniBand or RoCE port loses packets, and sends again",
        "{} port {}",
        10,
        10,
        _LOOK_AT_LINK,
    ),
    Row(
        r"net (\S+)",
        "what arrives at its network interface is damaged",
        "interface {}",
        10,
        10,
        _LOOK_AT_LINK,
    ),
)
"""The limits of PCIe are what its standard allows the fastest link; one error of memory an hour is usual."""
NUMBERED = ("nvlink", "amd", "npu")
"""Counters of devices by their numbers; others have an address on the bus."""


@dataclass(frozen=True, slots=True)
class Growth:
    """What was counted in so many seconds. `earlier`: since another run, not within this one."""

    seconds: int
    more: Mapping[str, int]
    earlier: bool = False

    @property
    def since(self) -> str:
        return f"in {duration(self.seconds)}" + (", since the earlier run" if self.earlier else "")


def _growths(now: Sequence[Counts], before: Sequence[Counts] | None) -> list[Growth]:
    """Between this run's readings; and since the last one of an earlier run, if the host is up since then."""
    found = []
    for first in (*now[:1], *(before or ())[-1:]):
        last = now[-1]
        if first.boot == last.boot and first.at < last.at:
            both = {
                name: value - first.named[name] for name, value in last.named.items() if name in first.named
            }
            more = {name: grew for name, grew in both.items() if grew > 0}
            found.append(Growth(last.at - first.at, more, first is not now[0]))
    if not found:
        raise Undecided("its counters were read only once")
    return found


NOT_READ = "nothing was read of its counters"


@check(
    "errors-growing",
    maybe(COUNTS),
    maybe(COUNTS_BEFORE),
    maybe(GPU_COUNTS),
    maybe(GPU_COUNTS_BEFORE),
    maybe(GPUS),
    damage=Damage.LOAD,
    severity=Severity.WARN,
    sphere=Sphere.HOST,
)
def errors_growing(
    counts: tuple[Counts, ...] | None,
    before: tuple[Counts, ...] | None,
    of_gpus: tuple[Counts, ...] | None,
    of_gpus_before: tuple[Counts, ...] | None,
    gpus: Gpus | None,
) -> Iterator[Problem]:
    """Errors of a PCIe link, an NVLink, a network port or memory are being counted right now.

    Why it matters: what is lost is sent again, and what is damaged is corrected, but each takes time, and all
    ranks wait for the slowest. A link whose errors grow is a link that fails next.

    How it is known: counters are read twice, with 8 seconds in between. Their number says nothing, since they
    count from the start of the host or of a driver; only what is added does: errors of PCIe that are not
    corrected, ten that are and more than 62 a minute (also as replays of an NVIDIA GPU), an NVLink that sends
    again, ten packets that an InfiniBand port or an interface lost, two errors of memory and more than 24 a
    day. With `--baseline` or `--again`, the earlier run is the first reading, unless the host was started
    since. A counter that is less than before began anew, and is not judged.

    What to do: reseat the card, the cable or the module that is named; if its errors still grow, replace it.
    """
    if counts is None:
        raise Skip(NOT_READ)
    growths = _growths(counts, before)
    if of_gpus:
        growths += _growths(of_gpus, of_gpus_before)
    yield from _growing(growths, {gpu.bus: gpu.index for gpu in gpus.listed} if gpus else {})


@check(
    "amd-errors-growing",
    maybe(AMD_COUNTS),
    maybe(AMD_COUNTS_BEFORE),
    damage=Damage.LOAD,
    severity=Severity.WARN,
    vendor=AMD,
)
def amd_errors_growing(
    counts: tuple[Counts, ...] | None, before: tuple[Counts, ...] | None
) -> Iterator[Problem]:
    """Errors of an AMD GPU's memory, or of its PCIe link, are being counted right now.

    Why it matters: memory that is corrected all the time is memory that fails next, and ends the job then.
    What a PCIe link loses is sent again, and all ranks wait for the slowest.

    How it is known: `amd-smi metric --ecc --pcie` is asked twice, with 8 seconds in between, and as in
    `errors-growing` only what is added counts: ten replays and more than 62 a minute, ten errors that were
    corrected and one a minute, one that was deferred. Those that were not corrected are amd-ras. XGMI links
    are not asked for their errors: reading them clears them.

    What to do: reseat the GPU or its riser if its link is named; if its memory is, have the GPU examined.
    """
    if counts is None:
        raise Skip(NOT_READ)
    yield from _growing(_growths(counts, before))


@check(
    "device-errors-growing",
    maybe(NPU_COUNTS),
    maybe(NPU_COUNTS_BEFORE),
    damage=Damage.LOAD,
    severity=Severity.WARN,
    remedy="look-at-npu-counters",
    backends=(Backend.HCCL,),
)
def device_errors_growing(
    counts: tuple[Counts, ...] | None, before: tuple[Counts, ...] | None
) -> Iterator[Problem]:
    """The link of an NPU damages packets right now, or sends them again.

    Why it matters: each lost packet stops a collective until it was sent again, and all ranks wait. A link
    whose errors grow is a link that fails next.

    How it is known: `hccn_tool -stat -g` is asked twice, with 8 seconds in between, and as in
    `errors-growing` only what is added counts: ten packets and more than ten a minute. Pauses and congestion
    are not errors. Atlas 950 is not asked.

    What to do: clean or replace the optical module and the cable; look at the port of the switch.
    """
    if counts is None:
        raise Skip(NOT_READ)
    yield from _growing(_growths(counts, before))


def _growing(
    growths: Sequence[Growth], numbers: Mapping[str, int] = MappingProxyType({})
) -> Iterator[Problem]:
    """`numbers`: those of GPUs by their addresses."""
    told = set()
    for growth in growths:
        for row in ROWS:
            matches = ((re.fullmatch(row.name, name), more) for name, more in growth.more.items())
            found = grouped((match[1], (match, more)) for match, more in matches if match)
            for name, own in found.items():
                problem = None if (row, name) in told else _grown(row, own, growth, numbers)
                if problem:
                    told.add((row, name))
                    yield problem


def _grown(
    row: Row, own: Sequence[tuple[re.Match[str], int]], growth: Growth, gpus: Mapping[str, int]
) -> Problem | None:
    """Both ends of a link may count one error, and a controller those of its modules: the most counts."""
    most, more = max(own, key=lambda each: (each[1], len(each[0][0])))
    if more < row.least or more * MINUTE < row.per_minute * growth.seconds:
        return None
    name = most[1]
    device = row.of.format(*(group or "" for group in most.groups()))
    number = int(name) if row.name.startswith(NUMBERED) else gpus.get(bus_id(name))
    if number is not None and not row.name.startswith(NUMBERED):
        device = f"{gpus_named([number])} at {name}"
    allowed = f"at most {row.per_minute:g} a minute" if row.per_minute >= 1 else "none"
    return Problem(
        row.says,
        expected=allowed,
        actual=f"{more} {growth.since}",
        subject=device,
        where=() if number is None else (Place(device=number),),
        severity=Severity.FAIL if row.fatal and not growth.earlier else None,
        evidence=tuple(Evidence(match[0], f"{each} more {growth.since}") for match, each in own[:SHOWN]),
        commands=(row.look,) if row.look else (),
    )


PATIENCE, ENOUGH, SLOW = 1000, 20, 500
"""Of so many requests to a file server, one may be lost; from `ENOUGH` on, their mean time counts, in ms."""


@check(
    "folder-server-slow",
    maybe(COUNTS),
    maybe(COUNTS_BEFORE),
    damage=Damage.LOAD,
    severity=Severity.WARN,
    sphere=Sphere.NETWORK,
)
def folder_server_slow(
    counts: tuple[Counts, ...] | None, before: tuple[Counts, ...] | None
) -> Iterator[Problem]:
    """A file server (NFS) leaves requests of this host unanswered, or answers late.

    Why it matters: ranks read their data and write their checkpoints there. A request that is lost is sent
    again after a minute, and the whole job waits for that rank.

    How it is known: the kernel counts the requests of each mount (/proc/self/mountstats): how often one was
    sent again, or got no answer in time, and how long all of them took. What is added in 8 seconds counts, or
    since the earlier run with `--baseline` and `--again`: three requests that were sent again and one in a
    thousand, one without an answer, or half a second for each of twenty.

    What to do: if only this host is named, look for lost packets on its way to the server (`ip -s link`);
    if many are, at the load of the server.
    """
    if counts is None:
        raise Skip(NOT_READ)
    names = (re.fullmatch(r"nfs (\S+) (\S+) (\w+)", name) for name in counts[-1].named)
    mounts = dict.fromkeys((match[1], match[2]) for match in names if match)
    if not mounts:
        raise Skip("it has no folder of an NFS server")
    growths = _growths(counts, before)
    for server, mount in mounts:
        yield from [each for growth in growths for each in _late(server, mount, growth)][:1]


def _late(server: str, mount: str, growth: Growth) -> Iterator[Problem]:
    asked, resent, unanswered, waited = (
        growth.more.get(f"nfs {server} {mount} {what}", 0)
        for what in ("asked", "resent", "unanswered", "waited")
    )
    often = max(resent, unanswered)
    lost = (often > 2 and often * PATIENCE > asked) or (unanswered > 0 and not growth.earlier)
    if lost or (asked >= ENOUGH and waited > SLOW * asked):
        took = f", {waited / 1000 / asked:.1f} s each" if asked else ""
        yield Problem(
            "a file server leaves requests unanswered" if lost else "a file server answers late",
            expected="each is answered once" if lost else f"at most {SLOW / 1000:g} s each",
            actual=f"{asked} requests, {resent} sent again, {unanswered} not answered in time{took},"
            f" {growth.since}",
            subject=f"{mount} of {server}",
            evidence=(Evidence("/proc/self/mountstats", f"{server} on {mount}"),),
            commands=(f"grep -A 30 {quote(f' on {mount} ')} /proc/self/mountstats",),
        )
