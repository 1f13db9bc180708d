"""Errors that are counted right now, on the bus, on links, in memory and by file servers: read twice."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from shlex import quote
from typing import NamedTuple

from doctor.api import (
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
from doctor.facts.gpus import Gpus, bus_id, gpus_named
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
_GPU = re.compile(r"GPU (?:(\d{1,4}): |(\w{4,8}:\w\w:\w\w)\.)")
_REPLAYS = re.compile(r"\s*Replays Since Reset\s*: (\d{1,15})")


def _counts(capture: Capture) -> tuple[Counts, ...]:
    """All readings, the first one first."""
    found: list[Counts] = []
    gpu = ""
    for line in capture.stdout.splitlines():
        if start := re.fullmatch(r"boot ([\w-]{1,40}) (\d{1,12})", line):
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


def _counts_before(capture: Capture) -> tuple[Counts, ...]:
    return _counts(capture) if capture.stdout.strip() else ()


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
COUNTS_BEFORE = Fact("counts-before", Run(""), _counts_before)
"""Nothing is asked for it: what an earlier run was told is put in its place."""

_LOOK_AT_GPUS = rf"""{_BOOT}B=600000
count() {{
  boot
  q replays -q | sed -n '/^GPU /p;/Replays Since Reset/p'
  q errors nvlink -e |
    sed -n '/^GPU /p;s/^[[:space:]]*Link \([0-9]*\): \([A-Z][A-Za-z]*\) Errors: \([0-9]*\)$/\3 nvlink \1 \2/p'
}}
count; sleep {WAIT}; count"""
GPU_COUNTS = asked("gpu-counts", 20, _counts, _LOOK_AT_GPUS)
GPU_COUNTS_BEFORE = Fact("gpu-counts-before", Run(""), _counts_before)


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
        "device {}",
        1,
        1,
        "nvidia-smi nvlink -e",
    ),
    Row(
        r"nvlink (\d+) (\d+) CRC",
        "an NVLink damages what it carries",
        "device {}",
        100,
        6000,
        "nvidia-smi nvlink -e",
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
    numbers = {gpu.bus: gpu.index for gpu in gpus.listed} if gpus else {}
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
    number = int(name) if row.name.startswith("nvlink") else gpus.get(bus_id(name))
    device = (
        row.of.format(*(group or "" for group in most.groups())) if number is None else gpus_named([number])
    )
    if number is not None and not row.name.startswith("nvlink"):
        device += f" at {name}"
    allowed = f"at most {row.per_minute:g} a minute" if row.per_minute >= 1 else "none"
    return Problem(
        row.says,
        expected=allowed,
        actual=f"{more} {growth.since}",
        subject=device,
        where=() if number is None else (Place(device=number),),
        severity=Severity.FAIL if row.fatal and not growth.earlier else None,
        evidence=tuple(Evidence(match[0], f"{each} more {growth.since}") for match, each in own[:SHOWN]),
        commands=(row.look,),
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
