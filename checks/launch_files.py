"""The launch: whether each host has the files that it names."""

from collections.abc import Iterator, Mapping
from shlex import quote

from doctor.api import PLAN, Damage, Evidence, JobPlan, Place, Problem, Scope, Severity, check, fold
from doctor.facts.job import LAUNCHES
from doctor.facts.needed import MISSING_FILES
from doctor.job.launch.process_env import Launch


@check("launch-files-missing", LAUNCHES, PLAN, MISSING_FILES, scope=Scope.CLUSTER, damage=Damage.BLOCKED)
def launch_files_missing(
    launches: tuple[Launch, ...], plan: JobPlan, missing: Mapping[str, tuple[str, ...]]
) -> Iterator[Problem]:
    """A file or folder that the launch names is not on every host.

    Why it matters: the ranks of a host without the container image, the training script, the interpreter or
    the environment end at once, and those of the other hosts wait for them until they time out.

    How it is known: from the absolute paths in the scripts of --launch: the image of singularity or
    apptainer, the program and its interpreter, the folder in which it starts, what is sourced, and
    configurations, models and files of data that options name (--deepspeed, --config, --train-file, …). Each
    host is asked whether they exist; nothing is run or read. What is inside a container or on another
    machine, what the script may create itself, and paths with an unknown part are not looked for. If no host
    has it, this is a warning: the script may be meant for other machines.

    What to do: copy the file to the hosts that the finding names, or mount the file system that has it.
    """
    for launch in launches:
        of_devices = {mark.text for process in launch.told for mark in process.marks}
        for path in launch.needs:
            lacking = [host for host in plan.names if path in missing.get(host, ())]
            everywhere = len(lacking) == len(missing)
            if lacking and not (everywhere and path in of_devices):  # launch-devices-absent tells of these
                yield Problem(
                    "a file that the launch needs is not there",
                    expected=f"{path}, on every host",
                    actual=f"missing on {fold(lacking)}",
                    subject=path,
                    hosts=() if everywhere else tuple(lacking),
                    where=tuple(Place(host=host) for host in lacking),
                    severity=Severity.WARN if everywhere else None,
                    evidence=(Evidence(launch.name, f"names {path}"),),
                    commands=(f"ls -ld {quote(path)}",),
                )
