"""horovodrun, which starts ranks by itself or by mpirun."""

from __future__ import annotations

from doctor.job.launch.launcher import Launcher

HOROVODRUN = Launcher("horovodrun", commands=("horovodrun",), by_name=True, outer=True)
