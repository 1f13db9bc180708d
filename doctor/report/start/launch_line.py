"""The line that starts the job on the chosen hosts, in the form of each launcher."""

from collections.abc import Mapping, Sequence

from doctor.errors import UsageError, suggest
from doctor.job.launch import launchers
from doctor.job.launch.forms import NODE_RANK, RANKS_HERE, Choice, Go, LaunchForm, LaunchParts
from doctor.job.plan import JobPlan
from doctor.job.wishes import SLURM
from doctor.targets.allocation import slurm_tasks

LAUNCH = "launch"
AUTO = "auto"
FORMS: Mapping[str, LaunchForm] = {
    "hostfile": LaunchForm(lambda start: hostfile(start.going)),
    **launchers.FORMS,
}


def read_form(text: str) -> str:
    """The form that `--print` asks for: `launch`, or `launch=` and the name of a form."""
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
    """The form that fits; if several do, the last one in the table of launchers."""
    framework = plan.layout.value.framework if plan.layout else None
    choice = Choice(hosts, environ, plan.env, framework, plan.backend.value)
    return next(name for name in reversed([*FORMS]) if FORMS[name].fits(choice))


def tasks_on_a_node(going: Go, plan: JobPlan, environ: Mapping[str, str]) -> int | None:
    """The number of tasks on a node in the Slurm allocation."""
    if {ranks.source for host in going.hosts if (ranks := plan.host(host).ranks)} == {SLURM}:
        return going.each
    tasks = slurm_tasks(environ)
    return tasks.value if tasks else None


def launch_lines(start: LaunchParts, form: str) -> str:
    """Lines for a shell; a hostfile has one line per host."""
    return "".join(f"{line}\n" for line in FORMS[form].lines(start))


def launch_notes(start: LaunchParts, form: str) -> tuple[str, ...]:
    """What the user still has to do: the line does not do it."""
    going, notes, lines = start.going, list(start.going.notes), launch_lines(start, form)
    if NODE_RANK in lines:
        order = ", ".join(f"{number} on {host}" for number, host in enumerate(going.hosts[:4]))
        more = ", and so on" if len(going.hosts) > 4 else ""
        notes.append(f"the line is for every host: NODE_RANK is {order}{more}")
    if RANKS_HERE.lstrip("$") in lines and going.each is None:
        counts = ", ".join(f"{going.ranks[host]} on {host}" for host in going.hosts[:4])
        notes.append(f"hosts have different numbers of ranks: NPROC_PER_NODE is {counts}")
    return tuple(notes)


def hostfile(going: Go) -> list[str]:
    return [f"{host} slots={going.ranks[host]}" for host in going.hosts]
