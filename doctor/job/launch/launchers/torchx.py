"""torchx, which starts torchrun."""

from doctor.job.launch.launcher import Launcher

TORCHX = Launcher("torchx", commands=("torchx",), by_name=True, outer=True)
