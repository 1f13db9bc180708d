"""Ray, whose workers may be ranks."""

from doctor.job.launch.launcher import Launcher

RAY = Launcher("ray", commands=("ray", "raylet"), by_name=True, outer=True)
