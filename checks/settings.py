"""The variables that every rank is given, by its login or by its launch, against what their library takes."""

import ipaddress
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise

from doctor.api import (
    HERE,
    PLAN,
    Backend,
    Damage,
    Evidence,
    Here,
    JobPlan,
    Problem,
    Scope,
    Severity,
    Skip,
    check,
    maybe,
)
from doctor.facts.network import ADDRESSES, UNNAMED
from doctor.facts.software import ENVIRONMENT, Environment
from doctor.job.plan.interfaces import fitting
from doctor.rules.devices import too_few_named
from doctor.rules.hccl_values import RANGES
from doctor.rules.login import environment_of, wrong_value

PORTS = ("HCCL_HOST_SOCKET_PORT_RANGE", "HCCL_NPU_SOCKET_PORT_RANGE")
WHITELIST, FILE_OF_LIST, TABLE = "HCCL_WHITELIST_DISABLE", "HCCL_WHITELIST_FILE", "RANK_TABLE_FILE"
FILES = {"NCCL_GRAPH_FILE": None, FILE_OF_LIST: None, TABLE: None} | dict.fromkeys(
    ("NCCL_TOPO_FILE", "NCCL_CONF_FILE", "NCCL_NET_PLUGIN", "NCCL_TUNER_PLUGIN"), Severity.WARN
)
"""Variables with the path of a file, and how bad it is if that is not there."""
FAMILIES = {"AF_INET": 4, "AF_INET6": 6}
LAST_PORT = 65535
_TRUTH = ("(?i)y|yes|1|t|true|n|no|0|f|false", "0 or 1")
_WHOLE = (r"\s*[+-]?[0-9].*", "a whole number")
_SETTING = (
    r"\s*(?:expandable_segments\s*:\s*(?:True|False)|max_split_size_mb\s*:\s*(?:2[1-9]|[3-9]\d|\d{3,})"
    r"|(?!expand|max_split|garbage_collection(?!_threshold\b))\w+\s*:\s*(?:\[[^\]]*\]|[^,:=\s\[\]]+))\s*"
)
_ALLOCATES = (rf"(?:{_SETTING}(?:,{_SETTING})*)?,?", "NAME:VALUE, such as expandable_segments:True")
_SWITCH = ("[01]", "0 or 1")
_WORD = "(?:tree|ring|collnet|collnetdirect|collnetchain|nvls|nvlstree|pat|ll|ll128|simple)"
_CHOICE = rf"(?:\w+:)?\^?{_WORD}(?:,{_WORD})*,?"
_CHOICES = rf"(?i)(?:{_CHOICE}(?:;{_CHOICE})*)?;?"
_LEVELS = r"(?:\w+\s*=\s*)?(?:level[0-3]\s*:\s*[\w+-]+\s*;?\s*)+"
VALUES: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "PYTHON": {
        "PYTHONHASHSEED": (
            r"(?:random|\s*\+?0*\d{1,9}|[1-3]\d{9}|4[0-2]\d{8})?",
            "random, or 0 to 4294967295",
        ),
        "PYTHONUTF8": ("[01]?", "0 or 1"),
        "PYTHONMALLOC": ("(?:(?:(?:py|mi)?malloc(?:_debug)?|debug|default))?", "malloc, pymalloc or debug"),
    },
    "TORCH": {"TORCH_DISTRIBUTED_DEBUG": ("(?i)off|info|detail", "OFF, INFO or DETAIL")},
    "GLOO": {
        "GLOO_DEVICE_TRANSPORT": ("LINUX|TCP|TCP_TLS|IBVERBS|UV", "TCP"),
        "TORCH_GLOO_LAZY_INIT": _TRUTH,
    },
    "NCCL": {
        "NCCL_ALGO": (_CHOICES, "Ring, Tree or another algorithm"),
        "NCCL_PROTO": (_CHOICES, "LL, LL128 or Simple"),
        "PYTORCH_CUDA_ALLOC_CONF": _ALLOCATES,
        "TORCH_NCCL_BLOCKING_WAIT": _TRUTH,
        "TORCH_NCCL_ASYNC_ERROR_HANDLING": _WHOLE,
        "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC": _WHOLE,
    },
    "HCCL": {
        "HCCL_ALGO": (rf"(?:{_LEVELS}(?:/\s*{_LEVELS})*|.*\(.*)?", "level0:NA;level1:ring"),
        "HCCL_DETERMINISTIC": ("(?i)true|false|strict", "true, false or strict"),
        "HCCL_ENTRY_LOG_ENABLE": _SWITCH,
        "HCCL_INTER_HCCS_DISABLE": ("(?i)true|false", "TRUE or FALSE"),
        "HCCL_INTRA_PCIE_ENABLE": _SWITCH,
        "HCCL_INTRA_ROCE_ENABLE": _SWITCH,
        "HCCL_SOCKET_FAMILY": ("AF_INET6?", "AF_INET or AF_INET6"),
        "HCCL_WHITELIST_DISABLE": _SWITCH,
        "PYTORCH_NPU_ALLOC_CONF": _ALLOCATES,
    },
}
"""Library -> name -> the values that it takes, as a pattern and in words. At others it stops when it is
loaded or when ranks meet; torch reads none of another library than theirs.
"""
NOT_ALWAYS = ("NCCL_ALGO", "NCCL_PROTO", "HCCL_ALGO")
"""NCCL before 2.24 leaves out the words that it does not know; what HCCL takes grows with its versions."""
_SPAN = re.compile(r"([0-9]{1,5})(?:-([0-9]{1,5}))?")


@check("env-invalid", maybe(ENVIRONMENT), maybe(ADDRESSES), PLAN, HERE, damage=Damage.BLOCKED)
def env_invalid(
    login: Environment | None,
    addresses: Mapping[str, tuple[str, ...]] | None,
    plan: JobPlan,
    here: Here,
) -> Iterator[Problem]:
    """A variable that the login hands to every rank has a value that its library does not take.

    Why it matters: HCCL refuses a value out of range when it makes its first communicator (EI0001), torch a
    word that it does not know when ranks meet, Python when it starts, and the job ends. Ranks inherit the
    variables of the login unless the launch sets others: the line may be in a start file that nobody has
    looked at for years, on all hosts alike.

    How it is known: from the variables of the login that the launch does not set. A family of addresses,
    whoever sets it, is compared with the addresses of the interfaces that ranks take: NCCL needs one, and
    so does HCCL if HCCL_SOCKET_IFNAME names interfaces. Without that it is a warning. NCCL stops if the
    file of NCCL_GRAPH_FILE is not there, and HCCL without that of RANK_TABLE_FILE, or if it is to read
    HCCL_WHITELIST_FILE, also if that is not set; NCCL goes on without other files, such as that of
    NCCL_TOPO_FILE, with what it knows itself. NCCL before 2.24 leaves out algorithms and protocols that it
    does not know, so these are warnings, too.

    What to do: correct the value where it is set, or set another in the launch, which overrides the login.
    """
    env = environment_of(plan, login)
    of_login = {name: value for name, value in env.items() if name not in plan.env}
    known = addresses if addresses and UNNAMED not in addresses else {}
    for name, said, wanted in (*_refused(of_login, plan), *_families(env, plan, known)):
        ours, library = name in of_login, _library(name)
        summary = f"{name}{' of the login' if ours else ''} is not a value that {library} takes here"
        lax = name == "HCCL_SOCKET_FAMILY" and said in FAMILIES and not env.get("HCCL_SOCKET_IFNAME")
        severity = Severity.WARN if lax or name in NOT_ALWAYS else None
        yield wrong_value(name, said, summary, wanted, plan, here.name if ours else "", severity)
    if (
        plan.backend.value is Backend.HCCL
        and env.get(WHITELIST) == "0"
        and FILE_OF_LIST not in (*env, *plan.lines)
    ):
        summary = f"{WHITELIST}=0 lets HCCL read the list of {FILE_OF_LIST}, which is not set"
        yield wrong_value(
            WHITELIST, "0", summary, f"{FILE_OF_LIST}=/…", plan, here.name if WHITELIST in of_login else ""
        )
    lost = {name: path for name in FILES for path in (login.absent.get(name, ()) if login else ())}
    for name, path in lost.items():
        read = name != FILE_OF_LIST or env.get(WHITELIST) == "0"
        library = "HCCL" if name == TABLE else name[:4]
        if read and name in of_login and library == plan.backend.value.value.upper():
            summary = f"{name} of the login names a file that is not there"
            yield wrong_value(name, path, summary, "a file that exists", plan, here.name, FILES[name])


@check("launch-values", PLAN, scope=Scope.CLUSTER, damage=Damage.BLOCKED)
def launch_values(plan: JobPlan) -> Iterator[Problem]:
    """The launch sets a variable to a value that its library does not take, or to a port of HCCL's own.

    Why it matters: torch refuses it when ranks meet, HCCL when it makes its first communicator (EI0001), and
    the job ends. If the master's port is one of those on which HCCL listens, one of the two cannot listen on
    the head.

    How it is known: from the values that all ranks are given alike, by the launch or the inventory, the
    ranges of HCCL's own documentation, and what torch takes. HCCL listens on 32 ports from HCCL_IF_BASE_PORT
    on. CUDA_VISIBLE_DEVICES and its likes are wrong on any host if they name fewer devices than it has ranks.

    What to do: set the variable to a value in the range that the finding names, or leave it out.
    """
    port, own = plan.master_port, plan.hccl_ports
    if plan.backend.value is not Backend.HCCL and not plan.env:
        raise Skip("no variable is set for the ranks")
    if plan.backend.value is Backend.HCCL and port.value in own:
        yield Problem(
            "the master's port is one of those on which HCCL listens",
            expected=f"a port that is not one of {own[0]}-{own[-1]}",
            actual=f"{port.value}, by {port.source}",
            subject=f"port {port.value}",
            evidence=(Evidence("HCCL's own ports", f"{own[0]}-{own[-1]}, by {plan.hccl_base_port.source}"),),
            commands=("# Give the master another port, or HCCL another HCCL_IF_BASE_PORT.",),
        )
    for name, said, wanted in _refused(plan.env, plan):
        summary = f"{name} is not a value that {_library(name)} takes"
        severity = Severity.WARN if name in NOT_ALWAYS else None
        yield wrong_value(name, said, summary, wanted, plan, severity=severity)
    for name in plan.vendor.visible if plan.vendor else ():
        if few := too_few_named(name, plan):
            devices = "1 device" if few[0] == 1 else f"{few[0]} devices"
            summary = f"{name} of the launch leaves {devices} to the {few[1]} ranks of a host"
            yield wrong_value(name, plan.env[name], summary, f"{few[1]}, each once", plan)


def _refused(env: Mapping[str, str], plan: JobPlan) -> Iterator[tuple[str, str, str]]:
    """Name, value and what would be taken, for each variable that torch or HCCL refuses."""
    backend, trains = plan.backend.value, plan.framework.value if plan.framework else "torch"
    libraries = ("PYTHON", "TORCH", backend.value.upper())
    for name, (taken, words) in (row for each in libraries for row in VALUES[each].items()):
        said = env.get(name)
        if said is not None and not re.fullmatch(taken, said) and (trains == "torch" or "TORCH" not in name):
            yield name, said, words
    if (said := env.get("JAX_COORDINATOR_ADDRESS")) and not re.search(r":\d+$|\$", said):
        yield "JAX_COORDINATOR_ADDRESS", said, f"{said}:PORT"
    if (
        backend is Backend.NCCL
        and env.get("NCCL_NET", "").upper() == "IB"
        and env.get("NCCL_IB_DISABLE", "0") == "1"
    ):
        yield "NCCL_NET", "IB", "Socket, or no NCCL_IB_DISABLE=1: that takes IB away"
    if plan.backend.value is not Backend.HCCL:
        return
    for name, (least, most) in RANGES.items():
        if (said := env.get(name)) is not None and not _is_between(said, least, most):
            yield name, said, f"a whole number of {least} to {most}"
    if (said := env.get("HCCL_RDMA_TC", "")).isdecimal() and int(said[:3]) % 4 and len(said) < 4:
        yield "HCCL_RDMA_TC", said, "a multiple of 4, of 0 to 252"
    for name in PORTS:
        if (said := env.get(name)) is not None and not _are_ports(said):
            yield name, said, "auto, or ports and ranges of 1 to 65535 that do not overlap: 60000-60050"


def _library(variable: str) -> str:
    first = variable.partition("_")[0]
    return "Python" if first in VALUES["PYTHON"] else "torch" if "TORCH" in first else first


def _families(
    env: Mapping[str, str], plan: JobPlan, addresses: Mapping[str, tuple[str, ...]]
) -> Iterator[tuple[str, str, str]]:
    """The family of addresses that no interface of the ranks has."""
    library = plan.backend.value.value.upper()
    said = env.get(f"{library}_SOCKET_FAMILY", "")
    version = FAMILIES.get(said)
    if not version or library == "GLOO" or env.get("HCCL_IF_IP" if library == "HCCL" else "NCCL_COMM_ID"):
        return
    wish = env.get(f"{library}_SOCKET_IFNAME", "")
    taken = fitting(wish, addresses) if wish else [name for name in addresses if name != "lo"]
    held = [address for name in taken for address in addresses[name]]
    if held and not any(ipaddress.ip_address(each.partition("%")[0]).version == version for each in held):
        yield f"{library}_SOCKET_FAMILY", said, f"a family that {', '.join(taken)} has: {', '.join(held)}"


def _is_between(said: str, least: int, most: int) -> bool:
    return re.fullmatch(r"[0-9]{1,12}", said) is not None and least <= int(said) <= most


def _are_ports(said: str) -> bool:
    if said == "auto":
        return True
    spans = [_SPAN.fullmatch(each) for each in said.split(",")]
    if not all(spans):
        return False
    ends = sorted((int(found[1]), int(found[2] or found[1])) for found in spans if found)
    apart = all(before[1] < after[0] for before, after in pairwise(ends))
    return apart and all(1 <= low <= high <= LAST_PORT for low, high in ends)
