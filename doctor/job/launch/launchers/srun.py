"""srun, one task per rank or one per node. Slurm numbers the nodes in its own order."""

import re
from collections.abc import Mapping

from doctor.job.launch.allocation import allocated
from doctor.job.launch.forms import LaunchForm, LaunchParts, shell_line
from doctor.job.launch.launcher import launcher_of, options_of
from doctor.text.nodeset import fold, unfold


def _line(start: LaunchParts) -> list[str]:
    """The srun line. The head is the first node in the allocation's order."""
    going = start.going
    tasks = going.world if start.tasks is not None and start.tasks == going.each else len(going.hosts)
    each = going.each if tasks == going.world else 1
    words = [f"--nodelist={','.join(going.hosts)}", f"--nodes={len(going.hosts)}", f"--ntasks={tasks}"]
    words += [f"--ntasks-per-node={each}"] if each else []
    words += [f"--export=ALL,MASTER_ADDR={going.address},MASTER_PORT={going.port}"]
    return [shell_line("srun", *words)]


_COUNT = re.compile(r"(?:[^:$]+:)*(\d+)")
_DEVICES = re.compile(r"(?:^|,)(?:gres/)?(?:gpu|npu|ascend)\w*(?::[A-Za-z_][^,:$]*)?(?::(\d+))?(?=[,(]|$)")


def _derived(options: Mapping[str, str]) -> Mapping[str, str]:
    """The options, with the number of devices of each node and the tasks of all nodes."""
    found, nodes, each = dict(options), options.get("nnodes", "1"), options.get("each", "")
    per_node = _COUNT.fullmatch(found.pop("gpus", ""))
    of_task = _COUNT.fullmatch(options.get("gpus_per_task", ""))
    in_all = _COUNT.fullmatch(options.get("all_gpus", ""))
    listed = _DEVICES.search(options.get("gres", ""))
    if per_node:
        found["gpus"] = per_node[1]
    elif listed:
        found["gpus"] = listed[1] or "1"
    elif of_task and (each == "1" or options.get("ranks") == nodes):
        found["gpus"] = of_task[1]
    elif in_all and nodes.isdecimal() and int(nodes):
        found["gpus"] = str(int(in_all[1]) // int(nodes))
    if "ranks" not in found and "nnodes" in options and (nodes + each).isdecimal() and each:
        found["ranks"] = str(int(nodes) * int(each))
    return found


SRUN = launcher_of(
    "srun",
    unless=(("SLURM_STEP_ID", "429496[0-9]{4}"),),
    options=options_of("srun", glued=True),
    derived=_derived,
    sets_for_job={
        "nnodes": ("SLURM_NNODES", "SLURM_JOB_NUM_NODES"),
        "ranks": ("SLURM_NTASKS", "SLURM_NPROCS"),
        "each": ("SLURM_NTASKS_PER_NODE",),
        "gpus": ("SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_NODE"),
        "gres": (),
        "gpus_per_task": (),
        "all_gpus": ("SLURM_GPUS",),
    },
    forms={
        "srun": LaunchForm(
            _line,
            lambda choice: set(choice.hosts) <= set(allocated(choice.environ)),
            lambda hosts, environ: (*allocated(environ), *unfold(fold(hosts))),
        )
    },
)
