"""What a cluster says if it refuses, or of a pod that does not run, as sentences and what to type. Pure."""

from collections.abc import Mapping

import msgspec

from doctor.errors import UsageError
from doctor.model import UnreachedKind
from doctor.transport.containers.refusals import refusal_in
from doctor.transport.errors import CannotReach, quoted
from doctor.transport.pods.podlist import Pod, Word

LONGEST = 300
UNAUTHORIZED = 401


def message_of(body: object, status: int = 0) -> str:
    """What is said in an answer of the API server, which is a Status in JSON or a text."""
    text = body.decode("utf-8", "replace") if isinstance(body, bytes) else str(body)
    try:
        said = msgspec.json.decode(text, type=Word).message
    except msgspec.MsgspecError:
        said = text[:4000]
    return f"{said} (Unauthorized)" if status == UNAUTHORIZED else said


def refused(said: str, kubectl: str, more: str = "") -> UsageError:
    """Why pods are not listed. `kubectl`: how it is called for this cluster and namespace."""
    what, remedy, commands = _meaning(said, kubectl, more)
    return UsageError(f"Kubernetes: {what}.", " ".join((remedy, *commands)))


def not_entered(said: str, kubectl: str, more: str = "") -> CannotReach:
    """Why a command did not start in a pod."""
    what, remedy, commands = _meaning(said, kubectl, more)
    return CannotReach(UnreachedKind.ENTRY, f"The pod was not entered: {what}.", remedy, commands)


def _meaning(said: str, kubectl: str, more: str) -> tuple[str, str, tuple[str, ...]]:
    """What it means, with `more` of it, what to do, and what to type."""
    refusal, caught = refusal_in(said)
    detail = f": {quoted(more, LONGEST).rstrip('.')}" if more else ""
    if refusal is None:
        words = f"the cluster says: {quoted(said, LONGEST) or 'nothing'}"
        return words, "Try the same by hand.", (f"{kubectl} get pods -o wide",)
    looks = (f"{kubectl} {refusal.look.replace('{}', caught)}",) if refusal.look else ()
    return refusal.meaning(caught) + detail, refusal.remedy, looks


def trouble_of(pod: Pod, container: str, kubectl: str) -> CannotReach | None:
    """None if the container runs."""
    state, more = _state(pod, container)
    return not_entered(f"pod {pod.name} is {state}", kubectl, more) if state else None


def _state(pod: Pod, container: str) -> tuple[str, str]:
    """The state of a pod that cannot be entered, in a word as kubectl shows it, and its details."""
    status, names = pod.status, [each.name for each in (*pod.spec.containers, *pod.spec.init)]
    if container not in names:
        return "WithoutContainer", f"{container}; it has {', '.join(names)}"
    if pod.metadata.deleted or (pod.leaves and status.reason):
        return ("Terminating", "") if pod.metadata.deleted else (status.reason, status.message)
    for each in status.conditions:
        if each.type == "PodScheduled" and each.status == "False":
            return "Unschedulable", each.message
    state = next((each.state for each in (*status.containers, *status.init) if each.name == container), {})
    if "running" in state:
        return "", ""
    for init in status.init:
        kind, more = _why(init.state)
        if kind not in ("", "Completed", "PodInitializing"):
            return f"Init:{kind}", f"{init.name}: {more}"
    kind, more = _why(state)
    return kind or status.phase or "Unknown", more


def _why(state: Mapping[str, Word]) -> tuple[str, str]:
    """Why a container does not run."""
    if ended := state.get("terminated"):
        return ("Ended" if ended.code else "Completed"), f"{ended.reason}, exit code {ended.code}"
    waits = state.get("waiting", Word())
    return waits.reason, waits.message
