"""msrun, and the dynamic cluster of MindSpore that it makes: workers, and one scheduler where they meet.

msrun is started on every host and starts a scheduler on the host that has the master's address; without an
address, on every host. A dynamic cluster started by hand uses the same variables.
"""

from doctor.job.launch import launcher
from doctor.job.launch.forms import Choice, LaunchForm, LaunchParts, shell_line
from doctor.model import Backend

HOST, PORT, WORKERS = "MS_SCHED_HOST", "MS_SCHED_PORT", "MS_WORKER_NUM"


def _master(agent: launcher.LauncherAgent) -> launcher.Master | None:
    given, port = agent.given("master_addr"), agent.setting("master_port")
    if given is None and agent.unknown("master_addr"):
        return None
    said = "--master_addr" if given else "the default of msrun (--master_addr is not given)"
    return launcher.Master(given or "127.0.0.1", port.text if port else "", said, "any host")


def _goes_by_node_rank(agent: launcher.LauncherAgent) -> bool:
    """Whether hosts need numbers: MindSpore numbers its ranks itself if none is given."""
    world, local, number = agent.world, agent.local_world, agent.node_rank
    differ = world is not None and local is not None and world.value != local.value
    return differ and number is not None and number.value != -1


def _line(start: LaunchParts) -> list[str]:
    going = start.going
    words = [f"--worker_num={going.world}", f"--local_worker_num={start.ranks_here}"]
    words += [f"--master_addr={going.address}", f"--master_port={going.port}"]
    return [shell_line("msrun", *words, f"--node_rank={start.node}", "--join=True")]


def _fits(choice: Choice) -> bool:
    """Whether this is MindSpore on Ascend."""
    env = {**choice.env, **choice.environ}
    mindspore = choice.framework == "mindspore" or WORKERS in env or HOST in env
    return mindspore and choice.backend is Backend.HCCL


MSRUN = launcher.launcher_of(
    "msrun",
    options=launcher.options_of(
        "msrun",
        abbreviated=True,
        shared=("ranks", "master_addr", "master_port", "cluster_time_out"),
        defaults={"ranks": "8", "nproc_per_node": "8", "master_port": "8118", "cluster_time_out": "600"},
    ),
    master=_master,
    goes_by_node_rank=_goes_by_node_rank,
    roles={"MS_SCHED": "scheduler", "MS_WORKER": "rank", "MS_PSERVER": "server"},
    forms={"msrun": LaunchForm(_line, _fits)},
)
