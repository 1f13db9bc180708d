"""horovodrun, which starts ranks itself or through mpirun."""

from doctor.job.launch.launcher import launcher_of, options_of

HOROVODRUN = launcher_of("horovodrun", options=options_of("horovodrun"))
