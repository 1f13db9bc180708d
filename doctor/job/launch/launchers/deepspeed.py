"""deepspeed, and the program it starts on each host: `python -m deepspeed.launcher.launch`."""

from __future__ import annotations

from doctor.job.launch.launcher import Launcher, OptionNames, master_given, named, unnamed

DEEPSPEED = Launcher(
    "deepspeed",
    commands=("deepspeed",),
    modules=("deepspeed.launcher.runner", "deepspeed.launcher.launch"),
    options=OptionNames(
        values={
            **named("master_addr", "master_port"),
            "node_rank": "node",  # deepspeed fills it in itself, except with --no_ssh
            **unnamed("num_nodes", "num_gpus", "num_accelerators", "H", "hostfile", "i", "include", "e"),
            **unnamed("exclude", "launcher", "launcher_args", "enable_each_rank_log", "autotuning"),
            **unnamed("comment", "account", "bind_core_list", "ssh_port", "world_info", "save_pid_path"),
            **unnamed("min_elastic_nodes", "max_elastic_nodes", "log_level"),
        },
        flags=frozenset({"module", "no_python", "no_local_rank", "no_ssh", "no_ssh_check", "force_multi"})
        | frozenset({"save_pid", "elastic_training", "bind_cores_to_rank"}),
        abbreviated=True,
    ),
    master=master_given,
    ends_job="always",
)
