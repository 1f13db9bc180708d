"""horovodrun, which starts ranks itself or through mpirun."""

from doctor.job.launch.launcher import Launcher, OptionNames, unnamed

HOROVODRUN = Launcher(
    "horovodrun",
    commands=("horovodrun",),
    outer=True,
    options=OptionNames(
        values={
            **dict.fromkeys(("np", "num_proc"), "ranks"),
            **dict.fromkeys(("H", "hosts"), "hosts"),
            **dict.fromkeys(("hostfile", "host_discovery_script", "config_file"), "hostfile"),
            **unnamed("p", "ssh_port", "i", "ssh_identity_file", "network_interfaces", "output_filename"),
            **unnamed("start_timeout", "min_np", "max_np", "slots_per_host", "mpi_args", "log_level"),
            **unnamed("fusion_threshold_mb", "cycle_time_ms", "cache_capacity", "timeline_filename"),
        },
        flags=frozenset({"gloo", "mpi", "jsrun", "tcp", "verbose", "disable_cache", "autotune"}),
    ),
    keeps_to_slots=r".+",
    hosts_besides=("LSB_DJOB_HOSTFILE",),
)
