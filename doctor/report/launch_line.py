"""The line that starts the job on the hosts that go, as each launcher wants it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from doctor.errors import UsageError, suggest
from doctor.job.plan import JobPlan
from doctor.job.wishes import SLURM
from doctor.model import Backend
from doctor.report.go import Going
from doctor.text.nodeset import unfold

LAUNCH = "launch"
AUTO = "auto"
NODE_RANK, RANKS_HERE = "$NODE_RANK", "$NPROC_PER_NODE"
"""What only the shell of each host can fill in."""


@dataclass(frozen=True, slots=True)
class Start:
    """What a line is made of. `hostfile` is one that holds these hosts with their ranks, if there is one."""

    going: Going
    plan: JobPlan
    id: str = "doctor"
    hostfile: Path | None = None
    tasks: int | None = None
    """Of each node, as the Slurm allocation has them."""


def read_form(text: str) -> str:
    """What `--print` asks for: `launch`, or `launch=` and the name of a form."""
    what, equals, form = text.partition("=")
    if what != LAUNCH:
        raise UsageError(f"--print: there is no {what[:40]!r}.", f"For instance --print {LAUNCH}.")
    form = form.strip().lower() if equals else AUTO
    if form not in (AUTO, *FORMS):
        near = suggest(form, (AUTO, *FORMS))
        known = f"There are {', '.join((AUTO, *FORMS))}."
        raise UsageError(f"--print launch: there is no form {form[:40]!r}{near and '; ' + near}", known)
    return form


def form_for(hosts: Sequence[str], plan: JobPlan, environ: Mapping[str, str]) -> str:
    """srun inside an allocation that has these hosts, msrun for MindSpore on Ascend, else torchrun."""
    if set(hosts) <= set(allocated(environ)):
        return "srun"
    told = {**plan.env, **environ}
    framework = plan.layout.value.framework if plan.layout else None
    mindspore = framework == "mindspore" or any(name in told for name in ("MS_WORKER_NUM", "MS_SCHED_HOST"))
    return "msrun" if mindspore and plan.backend.value is Backend.HCCL else "torchrun"


def launch_lines(start: Start, form: str) -> str:
    """Lines for a shell; in a hostfile, one a host."""
    return "".join(f"{line}\n" for line in FORMS[form](start))


def launch_notes(start: Start, form: str) -> tuple[str, ...]:
    """What the line leaves to whoever runs it."""
    going, notes = start.going, list(start.going.notes)
    if form in ("torchrun", "msrun") and len(going.hosts) > 1:
        order = ", ".join(f"{number} on {host}" for number, host in enumerate(going.hosts[:4]))
        more = ", and so on" if len(going.hosts) > 4 else ""
        notes.append(f"the line is for every host: NODE_RANK is {order}{more}")
    if form in ("torchrun", "rdzv", "msrun", "env") and going.each is None:
        counts = ", ".join(f"{going.ranks[host]} on {host}" for host in going.hosts[:4])
        notes.append(f"hosts have different numbers of ranks: NPROC_PER_NODE is {counts}")
    return tuple(notes)


def hostfile(going: Going) -> list[str]:
    return [f"{host} slots={going.ranks[host]}" for host in going.hosts]


def _srun(start: Start) -> list[str]:
    """Slurm numbers the nodes in its own order, which is that of the allocation: the head is its first."""
    going, plan = start.going, start.plan
    sources = {ranks.source for host in going.hosts if (ranks := plan.host(host).ranks)}
    one_a_rank = sources == {SLURM} or (start.tasks is not None and start.tasks == going.each)
    tasks = going.world if one_a_rank else len(going.hosts)
    each = going.each if tasks == going.world else 1
    words = [f"--nodelist={','.join(going.hosts)}", f"--nodes={len(going.hosts)}", f"--ntasks={tasks}"]
    words += [f"--ntasks-per-node={each}"] if each else []
    words += [f"--export=ALL,MASTER_ADDR={going.address},MASTER_PORT={going.port}"]
    return [_line("srun", *words)]


def _torchrun(start: Start) -> list[str]:
    going = start.going
    words = [*_size(going), f"--node-rank={_node(going)}"]
    return [_line("torchrun", *words, f"--master-addr={going.address}", f"--master-port={going.port}")]


def _rdzv(start: Start) -> list[str]:
    """The same line everywhere. Who holds the endpoint finds that out by its own name and its addresses."""
    going = start.going
    address = f"[{going.address}]" if ":" in going.address else going.address
    words = ["--rdzv-backend=c10d", f"--rdzv-id={start.id}", f"--rdzv-endpoint={address}:{going.port}"]
    return [_line("torchrun", *_size(going), *words)]


def _msrun(start: Start) -> list[str]:
    going = start.going
    words = [f"--worker_num={going.world}", f"--local_worker_num={going.each or RANKS_HERE}"]
    words += [f"--master_addr={going.address}", f"--master_port={going.port}"]
    return [_line("msrun", *words, f"--node_rank={_node(going)}", "--join=True")]


def _mpirun(start: Start) -> list[str]:
    going = start.going
    where = ["--host", ",".join(f"{host}:{going.ranks[host]}" for host in going.hosts)]
    if start.hostfile is not None:
        where = ["--hostfile", str(start.hostfile)]
    words = ["-np", str(going.world), "-x", f"MASTER_ADDR={going.address}", "-x", f"MASTER_PORT={going.port}"]
    return [_line("mpirun", *where, *words)]


def _env(start: Start) -> list[str]:
    """Assignments for `eval`."""
    going = start.going
    values = {
        "MASTER_ADDR": going.address,
        "MASTER_PORT": str(going.port),
        "NNODES": str(len(going.hosts)),
        "WORLD_SIZE": str(going.world),
        "NPROC_PER_NODE": str(going.each or ""),
        "HOSTS": " ".join(going.hosts),
    }
    return [f"{name}={shlex.quote(value)}" for name, value in values.items()]


FORMS: Mapping[str, Callable[[Start], list[str]]] = {
    "srun": _srun,
    "hostfile": lambda start: hostfile(start.going),
    "torchrun": _torchrun,
    "rdzv": _rdzv,
    "msrun": _msrun,
    "mpirun": _mpirun,
    "env": _env,
}


def _size(going: Going) -> list[str]:
    return [f"--nnodes={len(going.hosts)}", f"--nproc-per-node={going.each or RANKS_HERE}"]


def _node(going: Going) -> str:
    return NODE_RANK if len(going.hosts) > 1 else "0"


def _line(*words: str) -> str:
    """Every word quoted but for the two variables."""
    return " ".join(_quoted(word) for word in words)


def _quoted(word: str) -> str:
    name, equals, value = word.partition("=")
    if value in (NODE_RANK, RANKS_HERE):
        return f"{shlex.quote(name)}{equals}{value}"
    return shlex.quote(word)


def allocated(environ: Mapping[str, str]) -> list[str]:
    """The nodes of the allocation, in Slurm's order."""
    try:
        return list(unfold(environ.get("SLURM_JOB_NODELIST", ""))) if environ.get("SLURM_JOB_ID") else []
    except UsageError:
        return []


def job_id(environ: Mapping[str, str]) -> str:
    """What the scheduler calls the job, fit for the name of a file; empty where there is none."""
    names = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID", "OAR_JOB_ID")
    said = next((environ[name] for name in names if environ.get(name)), "")
    return re.sub(r"[^A-Za-z0-9._-]", "_", said)[:40].strip(".-_")
