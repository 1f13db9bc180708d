"""deepspeed, and the program it starts on each host: `python -m deepspeed.launcher.launch`."""

import re
from collections.abc import Mapping

from doctor.job.launch.launcher import launcher_of, master_given, options_of
from doctor.job.launch.launchers.torchrun import STATIC

CONFIGS = ("deepspeed", "deepspeed_config", "deepspeed_config_file")
"""Options whose value is a configuration; the first is that of the Trainer of Hugging Face, for which every
rank is a replica unless an option says otherwise.
"""
BATCH = {
    "global_batch": "train_batch_size",
    "micro_batch": "train_micro_batch_size_per_gpu",
    "accumulation": "gradient_accumulation_steps",
}
"""The keys of a parallel plan, and those of a configuration."""
READS_CONFIG = "deepspeed.initialize"
"""The function that takes the configuration as it is."""


def _derived(options: Mapping[str, str]) -> Mapping[str, str]:
    """The options, with the numbers of hosts and ranks that `--include node1:0,1@node2:0,1` selects."""
    if "exclude" in options:
        return {name: value for name, value in options.items() if name not in ("nnodes", "nproc_per_node")}
    selected = [part.partition(":") for part in options.get("include", "").split("@") if part]
    if not selected or any("$" in host for host, _, _ in selected):
        return dict(options)
    found = {**options, "nnodes": str(len(selected))}
    slots = {
        len(numbers.split(",")) if re.fullmatch(r"\d+(,\d+)*", numbers) else 0 for _, _, numbers in selected
    }
    if len(slots) == 1 and 0 not in slots:
        found["nproc_per_node"] = str(slots.pop())
    return found


DEEPSPEED = launcher_of(
    "deepspeed",
    options=options_of("deepspeed", abbreviated=True, defaults={"master_port": STATIC}),
    master=master_given,
    derived=_derived,
)
