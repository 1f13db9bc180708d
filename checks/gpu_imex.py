"""IMEX: the service that opens the memory of GPUs to other hosts, where NVLink joins hosts to one rack."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from doctor.api import (
    NVIDIA,
    PLAN,
    Capture,
    Confidence,
    Damage,
    Evidence,
    Fact,
    JobPlan,
    Place,
    Problem,
    Run,
    Scope,
    Severity,
    Skip,
    check,
    grouped,
    maybe,
)
from doctor.facts.nvidia.gpus import GPU_HEALTH, NvidiaHealth
from doctor.facts.nvidia.nvidia_smi import told
from doctor.facts.software import ENVIRONMENT, Environment
from doctor.facts.system import VIEW
from doctor.rules.login import environment_of
from doctor.rules.machines import votes_of

CHANNELS = "/dev/nvidia-caps-imex-channels"
NODES = "/etc/nvidia-imex/nodes_config.cfg"
_DRIVER = "/proc/driver/nvidia/version"
SWITCH = "NCCL_MNNVL_ENABLE"
PARAMETER = "NVreg_CreateImexChannel0=1"
SHOWN = 4
Domain = tuple[str, str]
"""Cluster and clique: GPUs that have both alike reach each other over NVLink."""


@dataclass(frozen=True, slots=True)
class Imex:
    """`runs` is None if the processes of the host cannot be seen; `nodes`: those that its list names."""

    channel: bool
    runs: bool | None
    nodes: frozenset[str]


_LOOK = f"""set -- {CHANNELS}/channel*
[ ! -e "$1" ] || echo channel
[ -r /proc/1/comm ] || echo hidden
[ ! -r {NODES} ] || sed -n '1,256s/^[[:space:]]*\\([^#[:space:]]\\)/node \\1/p' {NODES}
grep -lsx nvidia-imex /proc/[0-9]*/comm
:"""


def _imex(capture: Capture) -> Imex:
    lines = [line.strip() for line in capture.stdout.splitlines()]
    runs = any(re.fullmatch(r"/proc/\d+/comm", line) for line in lines)
    return Imex(
        "channel" in lines,
        runs or (None if "hidden" in lines else False),
        frozenset(line.split()[1][:64] for line in lines if re.match(r"node \S", line)),
    )


IMEX = Fact("imex", Run(_LOOK, _DRIVER), _imex, cap=65536)


@check(
    "imex-not-ready",
    maybe(IMEX),
    maybe(GPU_HEALTH),
    maybe(VIEW),
    maybe(ENVIRONMENT),
    PLAN,
    damage=Damage.BLOCKED,
    scope=Scope.CLUSTER,
    severity=Severity.WARN,
    vendor=NVIDIA,
    several_hosts=True,
)
def imex_not_ready(
    found: Mapping[str, Imex],
    health: Mapping[str, Mapping[int, NvidiaHealth]],
    views: Mapping[str, str],
    logins: Mapping[str, Environment],
    plan: JobPlan,
) -> Iterator[Problem]:
    """NVLink joins the GPUs of several hosts, and a host is not ready to share their memory (IMEX).

    Why it matters: NCCL tries the memory of other hosts at its start, and ends the job if that fails ("MNNVL
    is available but not working on this system"), although a job on one host runs.

    How it is known: hosts belong together if the driver says so (fabric.clusterUuid, fabric.cliqueId). Each
    needs a channel (/dev/nvidia-caps-imex-channels), the service nvidia-imex, and the same list of hosts
    (/etc/nvidia-imex/nodes_config.cfg). It is a warning, since Slurm and Kubernetes may set all this up when
    a job starts. Nothing is judged with NCCL_MNNVL_ENABLE=0, and no service from within a container.

    What to do: make the host as the others are. NCCL_MNNVL_ENABLE=0 lets the job start, over the network and
    at a fraction of the speed.
    """
    domains = {host: _domain(own) for host, own in health.items() if host in found}
    used = {
        host: domain
        for host, domain in domains.items()
        if domain and environment_of(plan, logins.get(host)).get(SWITCH, "").strip() != "0"
    }
    together = [
        hosts for hosts in grouped((domain, h) for h, domain in used.items()).values() if len(hosts) > 1
    ]
    if not together:
        raise Skip("NVLink joins no two hosts that take part")
    for hosts in together:
        yield from _without_channel(hosts, found)
        seen = [host for host in hosts if views.get(host) == "host" and found[host].runs is not None]
        yield from _without_service(seen, found)
        yield from _other_list([host for host in seen if found[host].runs], found)


def _domain(gpus: Mapping[int, NvidiaHealth]) -> Domain | None:
    """That of most GPUs. Hosts whose NVSwitches are their own say only zeros."""
    counted = Counter(
        (cluster, clique)
        for own in gpus.values()
        if re.search("[1-9a-f]", cluster := told(own.said.get("fabric.clusterUuid", "")).lower())
        and (clique := told(own.said.get("fabric.cliqueId", "")))
    )
    return counted.most_common(1)[0][0] if counted else None


def _without_channel(hosts: Sequence[str], found: Mapping[str, Imex]) -> Iterator[Problem]:
    lacking = tuple(host for host in hosts if not found[host].channel)
    if lacking:
        have = len(hosts) - len(lacking)
        yield Problem(
            "it has no IMEX channel",
            expected=f"channel0, as on {_of(have)} of its NVLink domain" if have else "channel0",
            actual="none",
            hosts=lacking,
            where=tuple(Place(host=host) for host in lacking),
            confidence=Confidence.STRONG if have else Confidence.SUSPECT,
            evidence=(Evidence(CHANNELS, "no such folder, or empty"),),
            commands=(
                f"echo 'options nvidia {PARAMETER}' | sudo tee /etc/modprobe.d/nvidia-imex.conf",
                "# Then restart the host. A container needs the device, too.",
            ),
        )


def _without_service(hosts: Sequence[str], found: Mapping[str, Imex]) -> Iterator[Problem]:
    idle = tuple(host for host in hosts if not found[host].runs)
    if idle and len(idle) < len(hosts):
        yield Problem(
            "the service nvidia-imex does not run",
            expected=f"it runs, as on {_of(len(hosts) - len(idle))} of its NVLink domain",
            actual="no such process",
            hosts=idle,
            where=tuple(Place(host=host) for host in idle),
            evidence=(Evidence("/proc/*/comm", "no nvidia-imex"),),
            commands=("sudo systemctl restart nvidia-imex", "tail -20 /var/log/nvidia-imex.log"),
        )


def _other_list(hosts: Sequence[str], found: Mapping[str, Imex]) -> Iterator[Problem]:
    votes, tie = votes_of({host: found[host].nodes for host in hosts if found[host].nodes})
    for nodes, odd in votes if tie else votes[1:]:
        usual = votes[0][0]
        other = sorted(nodes ^ usual)[:SHOWN]
        yield Problem(
            "its IMEX service joins other hosts than that of the others",
            expected="the same list on all hosts"
            if tie
            else f"{len(usual)} hosts, as on {_of(len(votes[0][1]))} of its NVLink domain",
            actual=f"{len(nodes)} hosts"
            + (f"; {', '.join(other)} in one of the lists only" if other else ""),
            hosts=odd,
            where=tuple(Place(host=host) for host in odd),
            confidence=Confidence.SUSPECT if tie else Confidence.STRONG,
            evidence=(Evidence(NODES, ", ".join(sorted(nodes)[:SHOWN])),),
            commands=("# Make the lists alike, then, on each host: sudo systemctl restart nvidia-imex",),
        )


def _of(count: int) -> str:
    return f"{count} other host{'s' if count > 1 else ''}"
