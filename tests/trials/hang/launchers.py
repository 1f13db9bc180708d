"""The launchers of `training.py`: torchrun on each host, mpirun over SSH, or srun of a real Slurm."""

import sys
from collections.abc import Callable, Mapping

from tests.lab.needs import without
from tests.lab.slurm import missing as no_slurm
from tests.support.injob import environment, start_mpirun, torchrun_argv
from tests.trials.hang.place import FOLDER, TRAINING, Place

Env = dict[str, str]


def meeting(place: Place) -> Env:
    """The variables that people export themselves if torchrun does not set them."""
    return {"MASTER_ADDR": place.hosts[0].address, "MASTER_PORT": str(place.port)}


def torchrun(place: Place, ranks: int, env: Env) -> None:
    for number, host in enumerate(place.hosts):
        place.run(host, [*torchrun_argv(place.hosts, ranks, number, place.port), TRAINING], env, "/")


def mpirun(place: Place, ranks: int, env: Env) -> None:
    told = environment(FOLDER=FOLDER, **env, **meeting(place))
    argv = [sys.executable, TRAINING]
    start_mpirun(place.job, place.lab, place.hosts, ranks, argv, told, place.user)


def srun(place: Place, ranks: int, env: Env) -> None:
    """On the first host, where its user is logged in."""
    number = len(place.hosts)
    words = ["srun", f"--nodes={number}", f"--ntasks={number * ranks}", "--chdir=/"]
    words += [f"--ntasks-per-node={ranks}", sys.executable, TRAINING]
    place.run(place.hosts[0], words, {**env, **meeting(place)}, "/")


LAUNCHERS: Mapping[str, Callable[[Place, int, Env], None]] = {
    "torchrun": torchrun,
    "mpirun": mpirun,
    "srun": srun,
}


def lacking(launcher: str) -> str | None:
    """Why it cannot start a job here."""
    if launcher == "srun":
        return no_slurm()
    return "it needs the program 'mpirun'" if launcher == "mpirun" and without("mpirun") else None
