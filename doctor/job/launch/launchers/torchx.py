"""torchx, which starts torchrun."""

from doctor.job.launch.launcher import launcher_of

TORCHX = launcher_of("torchx")
