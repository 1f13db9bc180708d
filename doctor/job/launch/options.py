"""The options of launchers: which of them take a value, and what the doctor calls it.

Only options that say something of the ranks have a name; of the others it is enough to know whether the word
behind them belongs to them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from doctor.job.launch.process_env import Way

NOT_GIVEN = "(not given)"
NOT_KNOWN = "$…"
"""Stands for words of a script that are not known."""


@dataclass(frozen=True, slots=True)
class Options:
    """Names are without dashes and with underscores. A value called "" is read over.

    `pairs` take two words; of those in `sets` the value is a variable for every rank. `abbreviated`: the
    beginning of a name is enough, as with argparse. `glued`: `-n8` is `-n 8`. `shared` options have to be the
    same wherever the launcher is started.
    """

    way: Way
    values: Mapping[str, str]
    flags: frozenset[str] = frozenset()
    pairs: frozenset[str] = frozenset()
    sets: frozenset[str] = frozenset()
    abbreviated: bool = False
    glued: bool = False
    shared: tuple[str, ...] = ()
    defaults: Mapping[str, str] = field(default_factory=dict)

    def known(self, name: str) -> str | None:
        """The full name of an option that takes a value."""
        if name in self.values:
            return name
        fitting = [full for full in self.values if full.startswith(name)] if self.abbreviated else []
        return fitting[0] if len(fitting) == 1 and len(name) > 2 else None


@dataclass(frozen=True, slots=True)
class Given:
    """What stands before the program, and where the program begins. `sets` are variables for every rank.

    `shown` are the words that say something of the ranks. Others may hold a secret; of those that were not
    known, what is left is that they were there.
    """

    values: Mapping[str, str]
    sets: Mapping[str, str]
    rest: tuple[str, ...]
    shown: tuple[str, ...]


def read_options(words: Sequence[str], known: Options) -> Given:
    """Both `--x=y` and `--x y`, `-` and `_` alike."""
    values: dict[str, str] = {}
    sets: dict[str, str] = {}
    shown: list[str] = []
    position = 0
    while position < len(words):
        word = words[position]
        if word == "--":
            position += 1
            shown.append(word)
            break
        if not word.startswith("-") or word == "-":
            break
        position += 1
        begin, says = position, False
        option, equals, value = word.partition("=")
        name = option.lstrip("-").replace("-", "_")
        full = known.known(name)
        if name in known.flags and not equals:
            values[name] = "true"
            says = True
        elif name in known.pairs:
            position += 2
            if len(words) >= position and name in known.sets:
                sets[words[position - 2]] = words[position - 1]
        elif full is not None:
            if not equals:
                value = words[position] if position < len(words) else ""
                position += 1
            if full in known.sets:
                sets.update(_settings(value))
            elif known.values[full]:
                values[known.values[full]] = value
                says = True
        elif known.glued and not option.startswith("--") and known.known(name[:1]):
            values[known.values[name[:1]]] = word[2:]
            says = known.values[name[:1]] != ""
        elif not equals and _is_value(words, position):
            position += 1
        if says:
            shown += (word, *words[begin:position])
        elif any(text.startswith(("$", "`")) for text in words[begin:position]):
            shown += (option, *(NOT_KNOWN for _ in words[begin:position]))
    return Given(values, sets, tuple(words[position:]), tuple(shown))


def _settings(text: str) -> dict[str, str]:
    """`NAME=value`, or several with commas between them."""
    found = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        if equals and name:
            found[name] = value
    return found


def _is_value(words: Sequence[str], position: int) -> bool:
    """Whether the word behind an unknown option belongs to it; another option or a script does not."""
    return position + 1 < len(words) and not words[position].startswith("-") and ".py" not in words[position]


def _named(*names: str) -> dict[str, str]:
    return {name: name for name in names}


def _unnamed(*names: str) -> dict[str, str]:
    return dict.fromkeys(names, "")


_TORCH_VALUES = {
    **_named("nnodes", "nproc_per_node", "node_rank", "master_addr", "master_port"),
    **_named("rdzv_backend", "rdzv_endpoint", "rdzv_id"),
    **_unnamed("rdzv_conf", "max_restarts", "monitor_interval", "start_method", "event_log_handler", "role"),
    **_unnamed("log_dir", "r", "redirects", "t", "tee", "local_ranks_filter", "local_addr", "logs_specs"),
    **_unnamed("numa_binding", "signals_to_handle", "enable_tiered_parallel_tcpstore"),
}
_TORCH_FLAGS = frozenset({"standalone", "m", "module", "no_python", "run_path", "use_env"})
_TORCH_DEFAULTS = {"nnodes": "1", "nproc_per_node": "1", "master_port": "29500"}

_TORCH_SHARED = ("nnodes", "master_addr", "master_port", "rdzv_backend", "rdzv_endpoint", "rdzv_id")

TORCHRUN = Options(
    "torchrun",
    _TORCH_VALUES,
    _TORCH_FLAGS,
    abbreviated=True,
    shared=_TORCH_SHARED,
    defaults={**_TORCH_DEFAULTS, "rdzv_backend": "static"},
)
TORCH_NPU_RUN = Options(
    "torch_npu_run",
    _TORCH_VALUES,
    _TORCH_FLAGS,
    abbreviated=True,
    shared=("nnodes", "master_addr", "master_port"),
    defaults=_TORCH_DEFAULTS,
)
MSRUN = Options(
    "msrun",
    {
        **_named("worker_num", "local_worker_num", "node_rank", "master_addr", "master_port"),
        **_named("cluster_time_out", "rank_table_file"),
        **_unnamed("log_dir", "join", "bind_core", "sim_level", "sim_rank_id", "worker_log_name"),
        **_unnamed("tail_worker_log"),
    },
    abbreviated=True,
    shared=("worker_num", "master_addr", "master_port", "cluster_time_out"),
    defaults={"worker_num": "8", "local_worker_num": "8", "master_port": "8118", "cluster_time_out": "600"},
)
MPIRUN = Options(
    "mpirun",
    {
        **dict.fromkeys(("n", "np", "c"), "ranks"),
        **dict.fromkeys(("H", "host", "hosts"), "hosts"),
        **_unnamed("hostfile", "machinefile", "f", "npernode", "N", "ppn", "map_by", "bind_to", "rank_by"),
        **_unnamed("rf", "rankfile", "prefix", "wdir", "wd", "output_filename", "timeout", "launcher", "x"),
        **_unnamed("host_list", "iface", "mca_base_env_list", "env"),
    },
    flags=frozenset({"allow_run_as_root", "oversubscribe", "tag_output", "report_bindings", "q", "v"})
    | frozenset({"display_map", "nooversubscribe", "merge_stderr_to_stdout", "l", "genvall", "mca_quiet"}),
    pairs=frozenset({"mca", "gmca", "pmca", "prtemca", "genv", "env"}),
    sets=frozenset({"x", "genv", "env"}),
)
SRUN = Options(
    "slurm",
    {
        **dict.fromkeys(("n", "ntasks"), "ranks"),
        **dict.fromkeys(("N", "nodes"), "nnodes"),
        **dict.fromkeys(("w", "nodelist"), "hosts"),
        **_unnamed("c", "cpus_per_task", "p", "partition", "x", "exclude", "J", "job_name", "o", "output"),
        **_unnamed("e", "error", "i", "input", "t", "time", "A", "account", "D", "chdir", "m", "G", "C"),
        **_unnamed("ntasks_per_node", "gres", "gpus", "gpus_per_node", "gpus_per_task", "mem", "jobid"),
        **_unnamed("export", "mpi", "cpu_bind", "mem_bind", "gpu_bind", "container_image", "qos"),
        **_unnamed("container_mounts", "container_workdir", "container_name", "reservation", "constraint"),
    },
    flags=frozenset({"l", "label", "u", "unbuffered", "exclusive", "overlap", "v", "Q", "quiet", "exact"})
    | frozenset({"kill_on_bad_exit", "wait", "no_container_mount_home", "K", "O", "overcommit", "s"}),
    sets=frozenset({"export"}),
    glued=True,
)
DEEPSPEED = Options(
    "deepspeed",
    {
        **_named("node_rank", "master_addr", "master_port"),
        **_unnamed("num_nodes", "num_gpus", "num_accelerators", "H", "hostfile", "i", "include", "e"),
        **_unnamed("exclude", "launcher", "launcher_args", "enable_each_rank_log", "autotuning", "comment"),
        **_unnamed("account", "bind_core_list", "ssh_port", "world_info", "save_pid_path"),
        **_unnamed("min_elastic_nodes", "max_elastic_nodes", "log_level"),
    },
    flags=frozenset({"module", "no_python", "no_local_rank", "no_ssh", "no_ssh_check", "force_multi"})
    | frozenset({"save_pid", "elastic_training", "bind_cores_to_rank"}),
    abbreviated=True,
)
ACCELERATE = Options(
    "accelerate",
    {
        "num_machines": "nnodes",
        "machine_rank": "node_rank",
        "main_process_ip": "master_addr",
        "main_process_port": "master_port",
        "num_processes": "ranks",
        **_named("rdzv_backend"),
        **_unnamed(
            "config_file", "mixed_precision", "gpu_ids", "dynamo_backend", "num_cpu_threads_per_process"
        ),
        **_unnamed("rdzv_conf", "max_restarts", "monitor_interval", "deepspeed_config_file", "zero_stage"),
        **_unnamed("deepspeed_hostfile", "gradient_accumulation_steps", "log_dir", "tee"),
        **_unnamed("num_cpu_threads_per_process"),
    },
    flags=frozenset({"multi_gpu", "cpu", "use_deepspeed", "use_fsdp", "debug", "quiet", "m", "module"})
    | frozenset({"no_python", "same_network", "use_megatron_lm", "q", "use_cpu", "enable_cpu_affinity"}),
    shared=("nnodes", "ranks", "master_addr", "master_port"),
)
