"""Which of the listed pods --pods means, in the order of their ranks. Pure."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from doctor.errors import UsageError, suggest
from doctor.text.nodeset import fold, unfold
from doctor.text.textfile import shown
from doctor.transport.pods.podlist import Pod

EXAMPLES = {
    "pod": "Such as --pods app=train, pytorchjob/NAME, jobset/NAME, raycluster/NAME or pod/train-[0-3].",
    "node": "Such as --on-nodes 'node/gpu[01-16]' or node-role.kubernetes.io/worker.",
}
KUBEFLOW, VOLCANO, BATCH = "training.kubeflow.org/", "volcano.sh/", "batch.kubernetes.io/"
LABELS = {
    **dict.fromkeys(("jobset", "trainjob"), "jobset.sigs.k8s.io/jobset-name"),
    **dict.fromkeys(("pytorchjob", "mpijob"), f"{KUBEFLOW}job-name"),
    "raycluster": "ray.io/cluster",
    "vcjob": f"{VOLCANO}job-name",
    "job": f"{BATCH}job-name",
}
"""The label that all pods of a job of this kind have. Pods of other kinds are found by their owner."""
_KIND = re.compile(r"([a-z][a-z0-9]{0,62})/([^=!() ]+)")
"""A job, or pods. What stands before the `/` of a label has dots."""
_ROLE = (
    *(f"{KUBEFLOW}replica-type", f"{KUBEFLOW}job-role", "replica-type"),
    *(f"{VOLCANO}task-spec", "ray.io/node-type"),
)
_INDEX = (
    *(f"{BATCH}job-completion-index", "apps.kubernetes.io/pod-index"),
    *(f"{KUBEFLOW}replica-index", "replica-index", f"{VOLCANO}task-index"),
)
_GROUP = "jobset.sigs.k8s.io/job-global-index"
_FIRST = ("master", "chief", "head")
_TRAINS_NOT = ("launcher", "scheduler", "ps", "evaluator")
MOST_JOBS = 8


@dataclass(frozen=True, slots=True)
class PodSelection:
    """Pods that fit all of these."""

    text: str
    labels: str = ""
    owner: tuple[str, str] | None = None
    names: tuple[str, ...] = ()


def read_selection(text: str, named: str = "pod", option: str = "--pods") -> PodSelection:
    """`named`: the kind whose names are given, not its labels. Raises UsageError."""
    if not text.strip():
        raise UsageError(f"{option} is empty.", EXAMPLES[named])
    kind, name = found.groups() if (found := _KIND.fullmatch(text)) else ("", "")
    if kind == named:
        return PodSelection(text, names=tuple(unfold(name)))
    if kind in LABELS:
        return PodSelection(text, f"{LABELS[kind]}={name}")
    return PodSelection(text, owner=(kind, name)) if kind else PodSelection(text, text)


def choose_pods(listed: Sequence[Pod], chosen: PodSelection, kubectl: str) -> tuple[list[Pod], list[str]]:
    """In the order of ranks, and why others are no hosts. Raises UsageError for none, or for several jobs."""
    if chosen.names:
        return _named(listed, chosen.names), []
    pods = [pod for pod in listed if chosen.owner in (None, pod.owner)]
    jobs = Counter(map(_job, pods))
    said = f"--pods {shown(chosen.text)}"
    if not pods:
        look = f"{kubectl} get pods --show-labels shows those of this namespace; another one: -n NAME"
        raise UsageError(f"{said}: no pod fits.", look)
    if len(jobs) > 1:
        few = ", ".join(f"{job or 'no job'} ({number})" for job, number in [*jobs.items()][:MOST_JOBS])
        hint = f"Choose one: --pods {next(filter(None, jobs))}"
        raise UsageError(f"{said}: pods of {len(jobs)} jobs fit: {few}.", hint)
    working = [pod for pod in pods if _role(pod) not in _TRAINS_NOT] or pods
    staying = [pod for pod in working if not _is_through(pod, working)]
    if not staying:
        raise UsageError(f"{said}: all its pods have ended.", "Start the job again.")
    idle = [pod.name for pod in pods if pod not in working]
    gone = [pod.name for pod in working if pod not in staying]
    notes = [f"{fold(idle)} trains nothing: not examined."] if idle else []
    notes += [f"{fold(gone)} has ended: not examined."] if gone else []
    return sorted(staying, key=_place), notes


def _named(listed: Sequence[Pod], names: Sequence[str]) -> list[Pod]:
    known = {pod.name: pod for pod in listed}
    if absent := [name for name in names if name not in known]:
        raise UsageError(f"Kubernetes: there is no pod {fold(absent)}.", suggest(absent[0], known))
    return [known[name] for name in names]


def _is_through(pod: Pod, others: Sequence[Pod]) -> bool:
    """It is no host of the job any more: another one has its place, or its part of the job is done."""
    if not pod.leaves:
        return False
    peers = [each for each in others if not each.leaves and _part(each) == _part(pod)]
    index, (kind, _) = pod.label(*_INDEX), pod.owner
    if kind == "replicaset" or index in [each.label(*_INDEX) for each in peers if index]:
        return bool(peers)
    is_rank = bool(index) or kind != "job"  # others of a Job are pieces of work
    return pod.status.phase == "Succeeded" and not (is_rank and peers)


def _part(pod: Pod) -> tuple[tuple[str, str], str, str]:
    """What pods of the same part of a job have in common."""
    return pod.owner, pod.label(_GROUP), _role(pod)


def _job(pod: Pod) -> str:
    """The job of a pod, as --pods takes it: by a label, else by its owner; empty if nothing says so."""
    labels = (f"{label}={name}" for label in LABELS.values() if (name := pod.label(label)))
    return next(labels, "/".join(filter(None, pod.owner)))


def _role(pod: Pod) -> str:
    """What it does in its job: as a label says, else as operators name pods (train-worker-3)."""
    kind, _ = pod.owner
    named = re.search(r"-([a-z]+)-[0-9]{1,9}$", pod.name) if kind.endswith("job") and kind != "job" else None
    return pod.label(*_ROLE).lower() or (named[1] if named else "")


def _place(pod: Pod) -> tuple[bool, int, int, str]:
    """The order of ranks: the master's pod first, then by index, else by the number in the name."""
    found = re.search(r"-([0-9]{1,9})$", pod.name)
    group, index = pod.label(_GROUP), pod.label(*_INDEX) or (found[1] if found else "")
    numbers = [int(each) if each.isdecimal() else 0 for each in (group, index)]
    return _role(pod) not in _FIRST, numbers[0], numbers[1], pod.name
