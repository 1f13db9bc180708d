"""The launch: whether each host has the files that it names."""

from collections.abc import Iterator, Mapping
from shlex import quote

from doctor.api import PLAN, Damage, Evidence, JobPlan, Place, Problem, Scope, Severity, check, fold
from doctor.facts.job import LAUNCHES
from doctor.facts.needed import NEEDED_FILES
from doctor.job.launch.process_env import Launch


@check("launch-files-missing", LAUNCHES, PLAN, NEEDED_FILES, scope=Scope.CLUSTER, damage=Damage.BLOCKED)
def launch_files_missing(
    launches: tuple[Launch, ...], plan: JobPlan, looked: Mapping[str, Mapping[str, str]]
) -> Iterator[Problem]:
    """A file or folder that the launch names is not on every host, or cannot be used on some.

    Why it matters: the ranks of a host without the container image, the training script, the interpreter or
    the environment end at once, and those of the other hosts wait for them until they time out.

    How it is known: from the absolute paths in the scripts of --launch: the image of singularity or
    apptainer, the program and its interpreter, the folder in which it starts, what is sourced, and
    configurations, models and files of data that options name (--deepspeed, --config, --train-file, …). Each
    host is asked whether they exist, are empty, and may be read by this user; nothing is run or read. What
    is inside a container or on another machine, what the script may create itself, and paths with an unknown
    part are not looked for. If no host has it, this is a warning: the script may be meant for other
    machines.

    What to do: copy the file to the hosts that the finding names, or mount the file system that has it.
    """
    for launch in launches:
        of_devices = {mark.text for process in launch.told for mark in process.marks}
        for path in launch.needs:
            states = {host: looked[host].get(path, "") for host in plan.names if host in looked}
            folders, files = (list(states.values()).count(kind) for kind in ("a folder", ""))
            by_name = folders == files and "." not in path.rpartition("/")[2]
            usual = "a folder" if folders > files or by_name else ""
            for state in sorted({*states.values()} - {usual}):
                hosts = [host for host in states if states[host] == state]
                everywhere = len(hosts) == len(states)
                if everywhere and (state == "empty" or path in of_devices):
                    continue  # launch-devices-absent tells of the latter
                how = "is not there" if state == "missing" else "cannot be used"
                yield Problem(
                    f"a file that the launch needs {how}",
                    expected=f"{path}, on every host",
                    actual=f"{state or 'no folder'} on {fold(hosts)}",
                    subject=path,
                    hosts=() if everywhere else tuple(hosts),
                    where=tuple(Place(host=host) for host in hosts),
                    severity=Severity.WARN if everywhere else None,
                    evidence=(Evidence(launch.name, f"names {path}"),),
                    commands=(f"ls -ld {quote(path)}",),
                )
