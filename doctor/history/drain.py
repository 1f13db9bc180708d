"""The machines that are called faulty or cleared, in the words of a scheduler. Nothing of it is run."""

import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from doctor.errors import UsageError
from doctor.history.envelope import Called, Machine

TAINT = "cluster-doctor/faulty"
CONDITION = "ClusterDoctorFault"
_AS_PATCH = ("--subresource=status", "--type=strategic", "-p")


@dataclass(frozen=True, slots=True)
class Drained:
    """The machines that are called something, longest first."""

    faulty: tuple[Machine, ...]
    withheld: tuple[Machine, ...]
    """Those beyond the budget."""
    cleared: tuple[Machine, ...]


def drained(machines: Sequence[Machine], most: int | None) -> Drained:
    called = sorted(
        ((one.called, one) for one in machines if one.called), key=lambda each: (each[0].since, each[1].name)
    )
    faulty = [one for said, one in called if said.faulty]
    return Drained(
        faulty=tuple(faulty[:most]),
        withheld=tuple(faulty[len(faulty) if most is None else most :]),
        cleared=tuple(one for said, one in called if not said.faulty),
    )


def most_of(typed: str | None, machines: int) -> int | None:
    """How many of the machines may be drained: "5%" of them, rounded up, or a number. Raises UsageError."""
    if typed is None:
        return None
    number, percent = typed.removesuffix("%"), typed.endswith("%")
    if not (number.isascii() and number.isdigit()) or len(number) > 6 or (percent and int(number) > 100):
        raise UsageError(
            f"--most-drained: {typed!r} is neither a number of machines nor a percentage.",
            "For example: --most-drained 5%.",
        )
    return -(-machines * int(number) // 100) if percent else int(number)


def lines_as(scheduler: str, found: Drained) -> Iterator[str]:
    """What to type, a line for each machine. Ids of checks need no quotes."""
    drain, resume = SCHEDULERS[scheduler]
    for line, machines in ((drain, found.faulty), (resume, found.cleared)):
        yield from (line(shlex.quote(one.name), one.called) for one in machines if one.called)


def _slurm(name: str, called: Called) -> str:
    """An administrator's own reason stays. A name that means several nodes, as ALL does, is none of them."""
    reason = f"doctor: {' '.join(called.checks)} since {called.since[:10]}"
    return (
        f"scontrol show node {name} -o | grep '^NodeName={name} ' | grep -qv ' Reason=' &&"
        f" scontrol update nodename={name} state=drain reason='{reason}'"
    )


def _slurm_again(name: str, _called: Called) -> str:
    return (
        f"scontrol show node {name} -o | grep -q '^NodeName={name} .* Reason=doctor:' &&"
        f" scontrol update nodename={name} state=resume"
    )


def _kubernetes(name: str, called: Called) -> str:
    taint = f"={called.checks[0]}:NoSchedule --overwrite &&" if called.faulty else "- ;"
    return f"kubectl taint node {name} {TAINT}{taint} {_condition(name, called)}"


def _condition(name: str, called: Called) -> str:
    """A patch: a manifest of the node would take away the taints and conditions of others."""
    condition = {
        "type": CONDITION,
        "status": str(called.faulty),
        "reason": "FaultFound" if called.faulty else "Cleared",
        "message": " ".join(called.checks),
        "lastTransitionTime": called.since,
    }
    patch = json.dumps({"status": {"conditions": [condition]}})
    return shlex.join(("kubectl", "patch", "node", name, *_AS_PATCH, patch))


def _plain(name: str, called: Called) -> str:
    said = "faulty" if called.faulty else "cleared"
    return f"{name} {said} {called.since} {','.join(called.checks)}"


SCHEDULERS: Mapping[str, tuple[Callable[[str, Called], str], Callable[[str, Called], str]]] = {
    "slurm": (_slurm, _slurm_again),
    "kubernetes": (_kubernetes, _kubernetes),
    "plain": (_plain, _plain),
}
