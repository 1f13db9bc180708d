"""Ray, whose workers may be ranks."""

from doctor.job.launch.launcher import launcher_of

RAY = launcher_of("ray")
