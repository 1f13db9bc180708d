"""The machine itself: memory that lost data, and a clock that cannot be right."""

import re
from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

from doctor.api import (
    EXPECT,
    Capture,
    Confidence,
    Damage,
    Evidence,
    Expect,
    Fact,
    Place,
    Problem,
    Read,
    Scope,
    Severity,
    Skip,
    Sphere,
    Undecided,
    check,
    files,
    grouped,
    maybe,
)
from doctor.facts.memory import LOST_DATA
from doctor.facts.processes import KERNEL_LOG, KernelLine
from doctor.facts.system import CLOCK, NAMEPLATE, Nameplate
from doctor.rules.kernel_log import read_log
from doctor.rules.machines import votes_of

MADE = datetime(2026, 11, 1, tzinfo=timezone.utc)
"""When this version was made: no clock that is right shows an earlier time."""

A_DAY = 24
"""From so many corrected errors on, a module is replaced soon."""
NO_MODEL = "no host says which model of machine it is"
SAME = 0.95
"""Of what the others have: settings of the firmware take a little."""
ENOUGH = 2
NEARLY_ALL = 0.9

_COUNTED = re.compile(
    r"EDAC (?:\w{1,20} )?MC\d{1,3}: (\d{1,6}) UE .*? on \S.* ?\((?:channel|csrow|branch|page|slot)"
)
"""The whole of the kernel's own line: other lines begin with a name that a user may choose."""
_PAGE = re.compile(r"Memory failure: (0x[0-9a-f]{1,16}): ")
_INJECTED = re.compile(r"Injecting memory failure (?:for pfn|at pfn) (0x[0-9a-f]{1,16})")
_READ = re.compile(r"mce: Uncorrected hardware memory error in user-access at ([0-9a-f]{1,16})")


_EDAC = "/sys/devices/system/edac/mc/mc[0-9]*"
_PATHS = (
    *("/proc/meminfo", "/proc/cmdline", "/sys/devices/system/cpu/online", "/sys/class/dmi/id/bios_version"),
    *("/sys/devices/system/cpu/cpu0/microcode/version", "/sys/devices/system/cpu/modalias"),
    *("/sys/block/md*/md/degraded", "/sys/block/md*/md/sync_action", "/sys/class/nvme/nvme*/state"),
    *(f"{_EDAC}/ce_count", f"{_EDAC}/seconds_since_reset"),
)
_NAME = re.compile(r"/sys/(?:block|class/nvme|devices/system/edac/mc)/(\w{1,32})/(?:md/)?(\w+)")


@dataclass(frozen=True, slots=True)
class Parts:
    """`memory` in kilobytes and `cpus` are 0 if unknown. `arrays`: how many disks each lacks, and what it
    does about that; `drives`: the state of each; `corrected`: errors of memory, and the seconds in which
    they were counted, by controller.
    """

    memory: int
    cpus: int
    bios: str
    microcode: tuple[str, str]
    """Those with the same family and model of processor are compared, and the version."""
    arrays: Mapping[str, tuple[int, str]]
    drives: Mapping[str, str]
    corrected: Mapping[str, tuple[int, int]]
    options: tuple[str, ...]


def _parts(capture: Capture) -> Parts:
    found = {path: text.strip() for path, text in files(capture).items()}
    named: dict[str, dict[str, str]] = {}
    for path, text in found.items():
        if name := _NAME.fullmatch(path):
            named.setdefault(name[1], {})[name[2]] = text
    total = re.search(r"^MemTotal:\s+(\d{1,15}) kB", found.get("/proc/meminfo", ""), re.MULTILINE)
    spans = re.findall(r"(\d{1,5})(?:-(\d{1,5}))?", found.get("/sys/devices/system/cpu/online", ""))
    return Parts(
        int(total[1]) if total else 0,
        sum(int(last or first) - int(first) + 1 for first, last in spans),
        found.get("/sys/class/dmi/id/bios_version", "")[:60],
        _microcode(found),
        {
            name: (_number(own["degraded"]), own.get("sync_action", "")[:20])
            for name, own in named.items()
            if "degraded" in own
        },
        {name: own["state"][:20] for name, own in named.items() if "state" in own},
        {
            name: (_number(own["ce_count"]), _number(own.get("seconds_since_reset", "")))
            for name, own in named.items()
            if "ce_count" in own
        },
        tuple(found.get("/proc/cmdline", "").split()[:200]),
    )


def _microcode(found: Mapping[str, str]) -> tuple[str, str]:
    """Versions of vendor 0002 begin with the kind of processor, which its model alone does not tell."""
    version = found.get("/sys/devices/system/cpu/cpu0/microcode/version", "")[:20]
    kind = re.search(r"ven(\w{4})fam\w{4}mod\w{4}", found.get("/sys/devices/system/cpu/modalias", ""))
    if not kind or not re.fullmatch(r"0x[0-9a-f]{3,16}", version):
        return "", ""
    return kind[0] + (version[:-2] if kind[1] == "0002" else ""), version


def _number(text: str) -> int:
    return int(text) if re.fullmatch(r"\d{1,12}", text) else 0


PARTS = Fact("parts", Read(_PATHS), _parts)


@check("clock-impossible", CLOCK, damage=Damage.BLOCKED, remedy="set-clock", sphere=Sphere.HOST)
def clock_impossible(now: float) -> Iterator[Problem]:
    """The clock shows a time before this version of doctor was made.

    Why it matters: certificates are not valid yet, licences and logins by Kerberos are refused, and the logs
    of ranks cannot be put on one time line. It is usual after the battery of a main board has failed.

    What to do: run a time service (chrony, systemd-timesyncd), and write the time to the hardware's clock
    (hwclock --systohc). If it is wrong again after the next restart, have the battery replaced.
    """
    if now < MADE.timestamp():
        shown = datetime.fromtimestamp(now, timezone.utc)
        yield Problem(
            f"its clock shows {shown:%Y-%m-%d %H:%M} UTC",
            expected=f"a time after {MADE:%Y-%m-%d}",
            actual=f"{shown:%Y-%m-%d %H:%M} UTC",
            evidence=(Evidence("date +%s.%N", f"{now:.0f}"),),
        )


@check(
    "memory-errors",
    maybe(LOST_DATA),
    maybe(KERNEL_LOG),
    EXPECT,
    maybe(PARTS),
    damage=Damage.WRONG,
    remedy="look-at-memory",
    sphere=Sphere.HOST,
)
def memory_errors(
    counts: tuple[int, ...] | None,
    lines: tuple[KernelLine, ...] | None,
    expect: Expect,
    parts: Parts | None = None,
) -> Iterator[Problem]:
    """The host's memory had errors that could not be corrected.

    Why it matters: data was lost. The kernel ends the process that used it, and a rank that ends takes all
    others with it; a module that failed once fails again.

    How it is known: the memory controller counts such errors since the start of the host
    (/sys/devices/system/edac), and the kernel's log of the last 24 hours names them; pages that a test took
    away do not count. Errors that were corrected are a warning if a controller counted 24 a day or more.

    What to do: have the module replaced that the kernel's log names; the count begins anew with the restart.
    """
    recent = read_log(lines or (), expect).lines
    tested = {found[1] for line in recent if (found := _INJECTED.match(line.message))}
    told = [line for line in recent if not line.is_crash and _lost(line.message, tested)]
    in_log = sum(int(found[1]) for line in told if (found := _COUNTED.match(line.message)))
    in_log = max(in_log, len({found[1] for line in told for found in (_page(line.message),) if found}))
    counted = sum(counts or ())
    count = max(counted, in_log)
    if count:
        yield Problem(
            "its memory had errors that could not be corrected",
            expected="none",
            actual=f"{count} since the host was started" if counted else f"{count} in the kernel's log",
            evidence=(
                *([Evidence("/sys/devices/system/edac/mc/mc*/ue_count", str(counted))] if counted else []),
                *(Evidence("dmesg", line.text[:300]) for line in told[-3:]),
            ),
        )
    else:
        yield from _often_corrected(parts)
    if not count and not counts and lines is None:
        raise Undecided(
            "no memory controller counts errors, and the kernel's log needs root (--sudo uses sudo -n)"
        )


def _often_corrected(parts: Parts | None) -> Iterator[Problem]:
    for name, (errors, seconds) in (parts.corrected if parts else {}).items():
        days = max(seconds / 86400, 1)
        if errors >= A_DAY * days:
            yield Problem(
                "its memory has many errors that are corrected",
                expected=f"fewer than {A_DAY} a day",
                actual=f"{errors} in {days:.0f} day{'' if round(days) == 1 else 's'}",
                subject=name,
                severity=Severity.WARN,
                evidence=(Evidence(f"/sys/devices/system/edac/mc/{name}/ce_count", str(errors)),),
            )


def _page(message: str) -> re.Match[str] | None:
    return _PAGE.match(message) or _READ.match(message)


def _lost(message: str, tested: Container[str]) -> bool:
    """A page that was taken away by a test, or as a precaution, lost nothing."""
    if page := _PAGE.match(message):
        lost = "hardware memory corruption" in message or "recovery action for" in message
        return lost and page[1] not in tested
    return bool(_COUNTED.match(message) or _READ.match(message))


@check(
    "memory-missing",
    maybe(PARTS),
    maybe(NAMEPLATE),
    damage=Damage.RISK,
    scope=Scope.CLUSTER,
    severity=Severity.WARN,
    remedy="find-memory",
    several_hosts=True,
    sphere=Sphere.HOST,
)
def memory_missing(parts: Mapping[str, Parts], plates: Mapping[str, Nameplate]) -> Iterator[Problem]:
    """A host has less memory, or fewer processors, than the other hosts of its model.

    Why it matters: a module that failed is left out at the next start, without a word: ranks of this host run
    out of memory when the others do not, and its memory is slower. Processors that are off make its ranks the
    slowest.

    How it is known: at least two other hosts of the same maker and model, nearly all of which have as much as
    each other, have over 5 % more memory, or more processors that are on. Virtual machines are not compared.

    What to do: the log of the BMC names the module. Processors are switched off in the firmware
    (hyper-threading), by options of the kernel (nosmt, maxcpus), or in /sys/devices/system/cpu.
    """
    models: defaultdict[tuple[str, str], dict[str, Parts]] = defaultdict(dict)
    for host, own in parts.items():
        plate = plates.get(host)
        if plate and plate.model and not plate.virtual:
            models[plate.maker, plate.model][host] = own
    if not models:
        raise Skip(NO_MODEL)
    for hosts in models.values():
        for host, own in hosts.items():
            others = [each for other, each in hosts.items() if other != host]
            if usual := _usual([each.memory for each in others], own.memory, SAME):
                yield _short(
                    host,
                    "it has less memory than the other hosts of its model",
                    f"{usual[0] >> 20} GB, as {usual[1]} other hosts of the model have",
                    f"{own.memory >> 20} GB",
                    Evidence("/proc/meminfo", f"MemTotal: {own.memory} kB"),
                )
            if usual := _usual([each.cpus for each in others], own.cpus, 1):
                yield _short(
                    host,
                    "it has fewer processors than the other hosts of its model",
                    f"{usual[0]}, as {usual[1]} other hosts of the model have",
                    f"{own.cpus}",
                    Evidence("/sys/devices/system/cpu/online", f"{own.cpus} are on"),
                )


def _usual(others: Sequence[int], own: int, share: float) -> tuple[int, int] | None:
    """What nearly all others have, and how many they are, if it is more."""
    if not own or len(others) < ENOUGH:
        return None
    usual = sorted(others)[len(others) // 2]
    alike = [each for each in others if share * usual <= each <= usual / share]
    return (usual, len(alike)) if own < share * usual and len(alike) >= NEARLY_ALL * len(others) else None


def _short(host: str, summary: str, expected: str, actual: str, evidence: Evidence) -> Problem:
    return Problem(
        summary,
        expected=expected,
        actual=actual,
        hosts=(host,),
        where=(Place(host=host),),
        evidence=(evidence,),
    )


WELL = {"live", "new", "resetting", "connecting"}
"""States of a drive that works, or will in seconds."""


@check(
    "disk-gone",
    maybe(PARTS),
    damage=Damage.RISK,
    severity=Severity.WARN,
    remedy="look-at-disks",
    sphere=Sphere.HOST,
)
def disk_gone(parts: Parts | None) -> Iterator[Problem]:
    """An array of disks (RAID) lacks a disk, or an NVMe drive does not answer any more.

    Why it matters: the next disk that fails takes the data with it. An array that is being rebuilt is slow,
    and so is every rank that reads its data there.

    How it is known: the kernel says how many disks an array of its own lacks (/sys/block/md*/md/degraded),
    and what each NVMe drive does (/sys/class/nvme/*/state).

    What to do: replace the disk, and add the new one to the array.
    """
    if parts is None:
        raise Skip("nothing was read of its disks")
    for name, (lacking, doing) in parts.arrays.items():
        if lacking:
            yield Problem(
                "an array of disks lacks a disk",
                expected="all its disks",
                actual=f"{lacking} lacking" + (f", {doing}" if doing not in ("", "idle") else ""),
                subject=name,
                evidence=(Evidence(f"/sys/block/{name}/md/degraded", f"{lacking}"),),
            )
    for name, state in parts.drives.items():
        if state and state not in WELL:
            yield Problem(
                "an NVMe drive does not work any more",
                expected="live",
                actual=state,
                subject=name,
                evidence=(Evidence(f"/sys/class/nvme/{name}/state", state),),
            )


STARTS = re.compile(
    r"(?:(?:intel_|amd_)?iommu|pci|pcie_aspm|pci_p2pdma|nosmt|maxcpus|nr_cpus|mem|isolcpus|nohz_full|numa"
    r"|numa_balancing|mitigations|transparent_hugepage|hugepages|default_hugepagesz|hugepagesz|(?:intel_|amd_)?pstate"
    r"|(?:processor|intel_idle)\.max_cstate|idle|cgroup_no_v1|systemd\.unified_cgroup_hierarchy)(?:=.*)?"
)
"""Options of the kernel that change how fast a host is, or whether its devices reach each other."""


@check(
    "boot-differs",
    maybe(PARTS),
    maybe(NAMEPLATE),
    damage=Damage.RISK,
    scope=Scope.CLUSTER,
    severity=Severity.WARN,
    several_hosts=True,
    sphere=Sphere.HOST,
)
def boot_differs(parts: Mapping[str, Parts], plates: Mapping[str, Nameplate]) -> Iterator[Problem]:
    """Machines of one model have another BIOS or microcode, or another start of the kernel.

    Why it matters: a host without `iommu=pt`, with another power setting or an older BIOS is slower than the
    others in ways that nothing reports, or its devices do not reach each other.

    How it is known: of real machines with the same maker and model, the versions of the BIOS and, for
    processors of one kind, of the microcode, and those options of the kernel that are about IOMMU, PCI,
    processors, memory, huge pages and power.

    What to do: start the hosts that differ as the others are: update the BIOS or the microcode, or correct
    the options (GRUB_CMDLINE_LINUX in /etc/default/grub), and restart.
    """
    models = grouped(
        ((plate.maker, plate.model), host)
        for host, plate in plates.items()
        if plate.model and not plate.virtual and host in parts
    )
    if not models:
        raise Skip(NO_MODEL)
    for hosts in models.values():
        started = {
            host: " ".join(sorted(filter(STARTS.fullmatch, parts[host].options))) or "none of them"
            for host in hosts
            if parts[host].options
        }
        bios = {host: parts[host].bios for host in hosts if parts[host].bios}
        microcodes = grouped((parts[host].microcode[0], host) for host in hosts if parts[host].microcode[0])
        for summary, values, source, how in (
            (
                "its BIOS is another than on machines of its model",
                bios,
                "/sys/class/dmi/id/bios_version",
                "the BIOS",
            ),
            *(
                (
                    "its processors have another microcode than on machines of its model",
                    {host: parts[host].microcode[1] for host in alike},
                    "/sys/devices/system/cpu/cpu0/microcode/version",
                    "the microcode",
                )
                for alike in microcodes.values()
            ),
            (
                "its kernel was started with other options than on machines of its model",
                started,
                "/proc/cmdline",
                "GRUB_CMDLINE_LINUX",
            ),
        ):
            votes, tie = votes_of(values)
            for value, odd in votes if tie else votes[1:]:
                yield Problem(
                    summary,
                    expected="the same on all of them"
                    if tie
                    else f"{votes[0][0]}, as on {len(votes[0][1])} hosts",
                    actual=value,
                    hosts=odd,
                    confidence=Confidence.SUSPECT if tie else Confidence.STRONG,
                    evidence=(Evidence(source, value),),
                    commands=(f"# Make it as on the others: {how}, then restart it.",),
                )
