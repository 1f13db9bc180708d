"""horovodrun, which starts ranks itself or through mpirun."""

from doctor.job.launch.launcher import Launcher, options_of

HOROVODRUN = Launcher(
    "horovodrun",
    commands=("horovodrun",),
    outer=True,
    options=options_of("horovodrun"),
    keeps_to_slots=r".+",
    hosts_besides=("LSB_DJOB_HOSTFILE",),
)
