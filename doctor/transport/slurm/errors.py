"""Why a host could not be asked through Slurm, as sentences."""

import shlex

from doctor.model import UnreachedKind
from doctor.transport.errors import CannotReach, quoted, rounded
from doctor.transport.slurm.output import NODE_FAILURE, DownNode, SrunMessages

_FATES = {
    "cancelled": ("The Slurm job was cancelled while the host was being examined.", "Submit it again."),
    "time-limit": ("The time limit of the Slurm job was reached.", "Give the job more time (--time)."),
    "preempted": ("The Slurm job was preempted.", "Wait until it runs again."),
    "node-failure": (
        "Slurm ended the step because a node of the job failed.",
        "Submit with --no-kill to keep the job when a node fails.",
    ),
    "no-job": (
        "srun cannot enter the allocation: the job has ended, or belongs to another user.",
        "Run it inside a running job: from the sbatch script, or in salloc's shell.",
    ),
    "no-contact": (
        "srun cannot reach Slurm's controller.",
        "Check whether Slurm is up: slurmctld and munge must run and agree on the key.",
    ),
}


def down(node: DownNode) -> CannotReach:
    said = f": {node.reason}" if node.reason and node.reason != "(null)" else ""
    return CannotReach(
        UnreachedKind.NODE,
        f"Slurm reports the node as {node.state}{said}.",
        "Look at slurmd on the node, then give it back: scontrol update nodename=… state=resume.",
        _look(node.name),
        node.reason,
    )


def taken_out(name: str) -> CannotReach:
    """The node failed while the job ran: with --no-kill, the job goes on and never gets it back."""
    return CannotReach(
        UnreachedKind.NODE,
        "Slurm has taken the node out of the job: it failed while the job ran.",
        "slurmctld's log says why it failed. A new job may get it again; this one will not.",
        _look(name),
    )


def not_launched(name: str, why: str) -> CannotReach:
    return CannotReach(
        UnreachedKind.NODE,
        f"Slurm could not start a step there: {quoted(why)}.",
        "Check that the node is up and that slurmd runs on it, with the same munge key and slurm.conf.",
        [*_look(name), "systemctl status slurmd munge   # on the node itself"],
        quoted(why),
    )


def never_began(name: str, seconds: float) -> CannotReach:
    return CannotReach(
        UnreachedKind.NODE,
        f"Slurm started no task there within {rounded(seconds)} s.",
        "A Prolog that hangs, a full disk under SlurmdSpoolDir or an overloaded node are the usual reasons: "
        "look at slurmd's log on the node.",
        _look(name),
    )


def no_step(words: SrunMessages, rc: int | None) -> CannotReach:
    """The whole step failed; nothing is known against this node."""
    if words.fate in _FATES:
        summary, remedy = _FATES[words.fate]
        return CannotReach(UnreachedKind.STEP, summary, remedy, ["squeue --me"], words.first)
    said = f": {words.first}" if words.first else f" (exit status {rc})" if rc else ""
    return CannotReach(
        UnreachedKind.STEP,
        f"srun could not run a step on the allocation{said}.",
        "Try srun by hand inside the same job.",
        ["srun --overlap --mpi=none -N 1 true"],
        words.first,
    )


def broke(name: str, words: SrunMessages) -> CannotReach:
    """The program had begun, and its task ended before it had finished."""
    if words.fate in _FATES and words.ended.get(name) != NODE_FAILURE:
        summary = _FATES[words.fate][0]
    elif name in words.ended:
        summary = f"Its task ended while the host was working; Slurm says: {words.ended[name]}."
    else:
        said = f" srun says: {words.first}." if words.first else ""
        summary = f"Its task ended while the host was working.{said}"
    return CannotReach(
        UnreachedKind.LOST, summary, "See whether the node is still up.", _look(name), words.first
    )


def contested(name: str) -> CannotReach:
    return CannotReach(
        UnreachedKind.NODE,
        f"Several tasks of the step claim to run on {name}, so none of them is believed.",
        "Look at the nodes of the job: a program on one of them poses as another.",
        _look(name),
    )


def not_here(program: str, error: OSError) -> CannotReach:
    return CannotReach(
        UnreachedKind.STEP,
        f"{program} cannot be started: {quoted(error.strerror or str(error))}.",
        "Put Slurm's commands on the PATH, or use --transport ssh.",
    )


def _look(name: str) -> list[str]:
    return [f"scontrol show node {shlex.quote(name)}"]
