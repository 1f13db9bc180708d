"""horovodrun, which starts ranks itself or through mpirun."""

from __future__ import annotations

from doctor.job.launch.launcher import Launcher

HOROVODRUN = Launcher("horovodrun", commands=("horovodrun",), by_name=True, outer=True)
