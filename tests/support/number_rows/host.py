"""Numbers in findings about one host: its kernel, limits, memory, disks and clock."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from checks.folders import Folder
from checks.image import Image
from doctor.api import Expect, Here, JobPlan
from doctor.facts.groups import GroupLimit
from doctor.facts.limits import CPUS, LIMITS, PORTS, Limits, Ports
from doctor.facts.memory import MEMORY, SEGMENTS, SPACES, SWAP, Spaces
from doctor.facts.network import BoundPort
from doctor.facts.processes import KERNEL_LOG, PROCESSES
from doctor.facts.software import Environment
from doctor.facts.system import TUNING, Nameplate
from doctor.job.needs import FolderNeed
from doctor.job.plan import draft
from doctor.job.wishes import JobWishes
from doctor.mesh import Listener, MeshResult
from doctor.mesh.result import ListenError
from doctor.model import Backend, Host, SourcedValue
from tests.support.captures import every_fact, held, printed
from tests.support.recordings import mesh
from tests.support.shown_numbers import Row

HERE = Here("node1", is_head=True)


def plan(ranks: int = 8, hosts: int = 2, backend: Backend = Backend.GLOO, **more: object) -> JobPlan:
    wishes = JobWishes(
        backend=SourcedValue(backend, "--backend"), ranks_per_host=SourcedValue(ranks, "--ranks-per-host")
    )
    return draft([Host(f"node{n}", f"node{n}") for n in range(1, hosts + 1)], replace(wishes, **more))  # type: ignore[arg-type]


def with_master(port: int) -> JobPlan:
    return plan(master_port=SourcedValue(port, "--master-port"))


def refused(port: int, why: ListenError = "denied") -> MeshResult:
    return replace(mesh(["node1"]), listeners=(Listener("node1", "master", port, None, why),))


def ports(
    somaxconn: int = 4096, backlog: int = 4096, span: tuple[int, int] = (32768, 60999), reserved: str = ""
) -> Ports:
    return held(
        PORTS,
        {
            "/proc/sys/net/core/somaxconn": str(somaxconn),
            "/proc/sys/net/ipv4/tcp_max_syn_backlog": str(backlog),
            "/proc/sys/net/ipv4/ip_local_port_range": f"{span[0]} {span[1]}",
            "/proc/sys/net/ipv4/ip_local_reserved_ports": reserved,
        },
    )


def limits(nofile: int = 65536, nproc: int = 65536, memlock: int | str = "unlimited", **more: int) -> Limits:
    return held(
        LIMITS,
        {
            "/proc/self/limits": "Limit                     Soft Limit           Hard Limit           Units\n"
            f"Max open files            {nofile}    65536    files\n"
            f"Max processes             {nproc}    65536    processes\n"
            f"Max locked memory         {memlock}    unlimited    bytes\n"
            f"Max address space         {more.get('space', 'unlimited')}    unlimited    bytes\n"
            f"Max file size             {more.get('file', 'unlimited')}    unlimited    bytes\n"
            f"Max cpu time              {more.get('cpu', 'unlimited')}    unlimited    seconds\n"
        },
    )


def spaces(path: str, total_mb: int, free_mb: int, inodes: int | None = None) -> Spaces:
    """As df prints it."""
    total, free = total_mb * 1024, free_mb * 1024
    mount = "/dev/shm" if path == "/dev/shm" else "/"
    text = f"path yes {path}\ntmpfs {total} {total - free} {free} 50% {mount}\n"
    found = printed(SPACES, text)
    return replace(found, places=tuple(replace(each, inodes=inodes) for each in found.places))


def meminfo(total_mb: int, available_mb: int, limit_mb: int = 0) -> dict[str, str]:
    host = {"/proc/meminfo": f"MemTotal: {total_mb * 1024} kB\nMemAvailable: {available_mb * 1024} kB"}
    limited = {
        "/sys/fs/cgroup/memory.max": str(limit_mb << 20),
        "/sys/fs/cgroup/memory.current": "0",
    }
    return host | limited if limit_mb else host


UPTIME = 90000.0
SWAPS = "Filename Type Size Used Priority"
EDAC = "EDAC MC0: {} UE memory read error on CPU_SrcID#0_Ha#0_Chan#0_DIMM#0 (channel:0 slot:0)"


def pids(number: int) -> str:
    return " ".join(f"{100 + n}!" for n in range(min(5, number)))


MB = 1 << 20
THROTTLED = "/sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count"


MC = "/sys/devices/system/edac/mc/mc0"


def machine(files: Mapping[str, object]) -> Any:
    return held(every_fact()["parts"], {path: str(text) for path, text in files.items()})


def memory(gigabytes: int) -> Any:
    return machine({"/proc/meminfo": f"MemTotal: {gigabytes << 20} kB"})


def processors(number: int) -> Any:
    return machine({"/sys/devices/system/cpu/online": f"0-{number - 1}"})


def alike(others: int, odd: Any, usual: Any) -> tuple[Any, ...]:
    """Machines of one model, of which the first differs."""
    parts = {"node1": odd} | {f"o{n}": usual for n in range(others)}
    return parts, dict.fromkeys(parts, Nameplate("Dell", "XE9680", "", False, {}))


def read_twice(seconds: int, **more: int) -> tuple[Any, None]:
    """Counters, and how much they grew meanwhile; nothing of an earlier run."""
    now = "".join(f"{500 + grew} {name.replace('__', ' ')}\n" for name, grew in more.items())
    then = "".join(f"500 {name.replace('__', ' ')}\n" for name in more)
    return printed(every_fact()["counts"], f"boot a 100\n{then}boot a {100 + seconds}\n{now}"), None


ROWS: dict[str, Row] = {
    "errors-growing": lambda more=700, seconds=8: (
        (*read_twice(seconds, net__eth0=more), None, None, None),
        f"10! {more} {seconds} …",
    ),
    "digest-differs": lambda others=4: (
        ({"node1": Image("", "x"), **{f"o{n}": Image("", "y") for n in range(others)}},),
        f"{others}",
    ),
    "folder-server-slow": lambda asked=80, waited=100_000, seconds=8: (
        read_twice(seconds, nfs__s__m__asked=asked, nfs__s__m__waited=waited),
        f"0.5! {asked} 0! 0! {waited / 1000 / asked:.1f} {seconds} 30!",
    ),
    "folder-server-slow: lost": lambda asked=800, resent=20, unanswered=1, seconds=8: (
        read_twice(
            seconds,
            nfs__s__m__asked=asked,
            nfs__s__m__resent=resent,
            nfs__s__m__unanswered=unanswered,
        ),
        f"{asked} {resent} {unanswered} 0.0! {seconds} 30!",
    ),
    "folder-unfit": lambda want=400, have=100: (
        (
            plan(needs=(FolderNeed("/data", False, want * 1024),)),
            {1: Folder("folder", True, source="srv:/data", type="nfs", mount="/data", free=have * 1024)},
        ),
        f"{want} {have}",
    ),
    "folder-slow": lambda want=500, reads=20: (
        (plan(needs=(FolderNeed("/data", rate=want),)), {1: float(reads)}),
        f"{want} {reads} {reads}",
    ),
    "folder-differs": lambda usual=8, odd=3: (
        (
            plan(needs=(FolderNeed("/data"),)),
            {
                h: {1: Folder("folder", source="/dev/sda1", mount="/", entries=n, names=str(n))}
                for h, n in {"h1": usual, "h2": usual, "h3": odd}.items()
            },
        ),
        f"{usual} {odd}",
    ),
    "folder-differs: not mounted": lambda entries=6: (
        (
            plan(needs=(FolderNeed("/data"),)),
            {
                h: {1: Folder("folder", source=source, mount="/", entries=n, names=str(n))}
                for h, source, n in (("h1", "s:/d", 90), ("h2", "s:/d", 90), ("h3", "/dev/sda1", entries))
            },
        ),
        f"{entries}",
    ),
    "group-limited": lambda room=40, ranks=8: (
        (Environment({}, groups=(GroupLimit("pids", "pids.max", "/a", room),)), ranks, Expect()),
        f"{128 * ranks} {ranks} {room} {room}",
    ),
    "group-limited: memory": lambda room=1000, ranks=8: (
        (Environment({}, groups=(GroupLimit("memory", "memory.max", "/a", room * MB),)), ranks, Expect()),
        f"{512 * ranks} {ranks} {room} {room}",
    ),
    "somaxconn-low: expected": lambda length=40, need=200000: (
        (ports(length), plan(), HERE, Expect(somaxconn=need)),
        f"{need} {length} {length} {need}",
    ),
    "syn-backlog-low": lambda length=40, ranks=80: (
        (ports(backlog=length), plan(ranks), HERE, Expect()),
        f"{2 * ranks} {2 * ranks} {length} {length} 65535!",
    ),
    "ephemeral-ports-few": lambda first=32768, number=32, reserved=8, ranks=16: (
        (ports(span=(first, first + number - 1), reserved=f"{first}-{first + reserved - 1}"), ranks),
        f"{8 * ranks} {ranks} 8! {number - reserved} {first} {first + number - 1} {number} {reserved} "
        f"{first} {first + number - 1} {first} {first + reserved - 1}",
    ),
    "port-in-use": lambda port=29500: (
        ((BoundPort("0.0.0.0", port, "python"),), with_master(port), HERE, None, None, None),
        f"{port} {port} {port}",
    ),
    "port-in-use: root": lambda port=400: (
        ((), with_master(port), HERE, None, None, refused(port)),
        f"{port} {port} {port} 1023!",
    ),
    "nproc-low": lambda limit=64, need=1000: (
        (limits(nproc=limit), 8, Expect(nproc=need)),
        f"{need} {limit} {limit} 65535!",
    ),
    "memlock-low": lambda limit=8 * MB, wanted=64: (
        (limits(memlock=limit), ("mlx5_0",), Expect(memlock_mb=wanted)),
        f"{wanted} {limit // 1024} {limit}",
    ),
    "file-size-limited": lambda limit=800 * MB, wanted=102400: (
        (limits(file=limit), Expect(file_size_mb=wanted)),
        f"{wanted} {limit // MB} {limit}",
    ),
    "cpu-time-limited": lambda limit=800, wanted=300: (
        (limits(cpu=limit), Expect(cpu_hours=wanted)),
        f"{wanted} {limit} {limit}",
    ),
    "arp-table-small": lambda size=4, hosts=32: (
        (size, plan(hosts=hosts), Expect()),
        f"{hosts} {hosts} {size} {size} {hosts} {2 * hosts} {4 * hosts}",
    ),
    "arp-table-small: job": lambda size=4, world=256, each=8: (
        (size, replace(plan(each), said_world=SourcedValue(world, "--world")), Expect()),
        f"{-(-world // each)} {-(-world // each)} {world} {each} {size} {size} "
        + " ".join(str(n * -(-world // each)) for n in (1, 2, 4)),
    ),
    "cpu-governor": lambda slow=16, fast=4: (
        (
            held(
                TUNING,
                {
                    f"/sys/devices/system/cpu/cpu{n}/cpufreq/scaling_governor": "powersave"
                    if n < slow
                    else "performance"
                    for n in range(slow + fast)
                },
            ),
            Expect(),
        ),
        f"{slow} {fast} {slow}",
    ),
    "numa-balancing": lambda nodes=4: (
        (
            held(
                TUNING,
                {"/proc/sys/kernel/numa_balancing": "1", "/sys/devices/system/node/online": f"0-{nodes - 1}"},
            ),
        ),
        f"0! {nodes} 0!",
    ),
    "swap-active": lambda total=1600, used=400, most=64: (
        (
            held(SWAP, {"/proc/swaps": f"{SWAPS}\n/dev/sda2 partition {total * 1024} {used * 1024} -2"}),
            Expect(swap_used_mb=most),
        ),
        f"{most} {used} {total} {used}",
    ),
    "cpu-affinity-narrow": lambda own=2, all=64, ranks=16: (
        (
            held(
                CPUS,
                {
                    "/proc/self/status": f"Cpus_allowed_list:\t0-{own - 1}",
                    "/sys/devices/system/cpu/online": f"0-{all - 1}",
                },
            ),
            None,
            plan(ranks),
            HERE,
        ),
        f"{min(all, ranks)} {ranks} {own} {all} {own} {all}",
    ),
    "shm-small": lambda total=40, free=20, ranks=16: (
        (spaces("/dev/shm", total, free), ranks, Expect()),
        f"{40 * ranks} {ranks} {total} {total * 1024} {free * 1024} {max(1024, 80 * ranks)}",
    ),
    "shm-small: gone": lambda ranks=16: (
        (Spaces((), (), ("/dev/shm",)), ranks, Expect()),
        f"{40 * ranks} {max(1024, 80 * ranks)}",
    ),
    "shm-full": lambda total=4000, free=20, ranks=16, left=30: (
        (
            spaces("/dev/shm", total, free),
            printed(SEGMENTS, f"-rw------- 1 job job {left * MB} Nov 24 10:00 torch_x"),
            ranks,
            Expect(),
        ),
        f"{40 * ranks} {ranks} {free} {total} {left} {free * 1024} {left * MB}",
    ),
    "shm-full: inodes": lambda free=4000, inodes=8: (
        (spaces("/dev/shm", 8000, free, inodes), None, 1, Expect()),
        f"64! {inodes} {free} {inodes} 2!",
    ),
    "memory-low: limited": lambda host=64000, limit=1000, ranks=16: (
        (held(MEMORY, meminfo(128000, host, limit)), ranks, Expect()),
        f"{512 * ranks} {ranks} {limit} {limit} {host * 1024} {limit * 1024} {512 * ranks}",
    ),
    "disk-full": lambda free=400, wanted=1024: (
        (spaces("/tmp", 80000, free), Expect(disk_free_mb=wanted)),
        f"{wanted} {free} {free * 1024} 2!",
    ),
    "memory-errors: log": lambda count=4: (
        (
            None,
            printed(KERNEL_LOG, f"uptime {UPTIME}\n[{UPTIME - 10}] {EDAC.format(count)}"),
            Expect(),
        ),
        f"{count} {count} 0!",
    ),
    "memory-errors: corrected": lambda errors=4000, days=10: (
        (None, (), Expect(), machine({f"{MC}/ce_count": errors, f"{MC}/seconds_since_reset": 86400 * days})),
        f"24! {errors} {days} {errors}",
    ),
    "memory-missing": lambda own=400, usual=2000, others=8: (
        alike(others, memory(own), memory(usual)),
        f"{usual} {others} {own} {own << 20}",
    ),
    "memory-missing: processors": lambda own=40, usual=200, others=8: (
        alike(others, processors(own), processors(usual)),
        f"{usual} {others} {own} {own}",
    ),
    "boot-differs": lambda others=8: (
        alike(others, machine({"/proc/cmdline": "iommu=on"}), machine({"/proc/cmdline": "iommu=pt"})),
        f"{others}",
    ),
    "cpu-throttled": lambda count=360000, usual=30: (
        (
            {
                f"node{n}": held(
                    every_fact()["heat"],
                    {THROTTLED: str(usual if n else count), "/proc/uptime": "36000.00 1.00"},
                )
                for n in range(8)
            },
        ),
        f"{usual / 10:.0f} {count / 10:.0f} {count}",
    ),
    "disk-gone": lambda lacking=4: (
        (machine({"/sys/block/md0/md/degraded": lacking, "/sys/block/md0/md/sync_action": "idle"}),),
        f"{lacking} {lacking}",
    ),
    "stuck-process": lambda number=4, seconds=7200: (
        (
            printed(
                PROCESSES,
                "1 0 Ss root 90000 /sbin/init\n"
                + "".join(f"{100 + n} 7 D root {seconds} python\n" for n in range(number)),
            ),
            Expect(),
        ),
        f"{number} {pids(number)} 100! " + " ".join(f"{100 + n}! {seconds}" for n in range(min(5, number))),
    ),
    "kernel-log": lambda kills=4, hours=6.0: (
        (
            printed(
                KERNEL_LOG,
                f"uptime {UPTIME}\n"
                + "".join(
                    f"[{UPTIME - hours * 3600 + n}] Out of memory: Killed process {n} (python)\n"
                    for n in range(kills)
                ),
            ),
            Expect(),
            plan(),
        ),
        f"24! {kills} " + " ".join(f"{hours:.1f} {n}" for n in range(max(0, kills - 3), kills)),
    ),
    "clock-impossible": lambda minutes=10_000_000: (
        (minutes * 60.0,),
        f"{minutes * 60}",
    ),
}
