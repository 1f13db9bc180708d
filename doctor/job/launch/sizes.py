"""Sizes of the model and of its parallel groups in the command of a rank, by the options of Megatron."""

import re
from collections.abc import Mapping, Sequence

from doctor.job.launch.launchers.deepspeed import DEEPSPEED

_DIVIDES = {"tp": "tensor_model", "pp": "pipeline_model", "cp": "context", "ep": "expert_model"}
_GROUPS = {key: f"{name}_parallel_size" for key, name in _DIVIDES.items()}
_OTHERS = {
    "heads": "num_attention_heads",
    "kv_heads": "num_query_groups",
    "layers": "num_layers",
    "micro_batch": "micro_batch_size",
    "global_batch": "global_batch_size",
}
_NOT_MEANT: Mapping[str, str] = {
    "layers": rf"{DEEPSPEED.name}|decoder_(?:first|last)\w*|account_for\w+|pipeline_model_parallel_layout"
    r"|standalone_\w+|num_layer_list|noop_layers|mtp_num_layers|num_virtual_\w+",
    "global_batch": r"rampup_batch_size|decrease_batch_size_if_needed",
}
"""Size -> options with which its rule is another one."""
_ELSEWHERE = r"use_checkpoint_args|yaml_cfg|encoder_\w*(?:layers|parallel_size)"
"""Options which say that sizes come from a file, or that parts of the model have their own."""


def sizes_in(words: Sequence[str]) -> dict[str, int]:
    """The sizes that these words state. Groups that they do not divide count as 1 if no word is unknown."""
    given = _options(words)
    if not given.keys() & {*_GROUPS.values(), "micro_batch_size"} or _has(given, _ELSEWHERE):
        return {}
    found = {key: _number(given.get(name, "")) for key, name in (_GROUPS | _OTHERS).items()}
    program = next((place for place, word in enumerate(words) if word.endswith(".py")), 0)
    whole = not any(re.match(r"[$`]", word) for word in words[program:])
    for key, name in _GROUPS.items():
        found[key] = 1 if whole and name not in given else found[key]
    if "group_query_attention" not in given:
        found["kv_heads"] = None
    for key, others in _NOT_MEANT.items():
        found[key] = None if _has(given, others) else found[key]
    if None in (found["tp"], found["pp"], found["cp"], found["micro_batch"], found["global_batch"]):
        found["micro_batch"] = found["global_batch"] = None
    return {key: number for key, number in found.items() if number}


def _options(words: Sequence[str]) -> dict[str, str]:
    """Option -> its value; the last one counts."""
    found = {}
    for word, after in zip(words, (*words[1:], ""), strict=True):
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            found[name.replace("-", "_")] = value if equals else after
    return found


def _has(given: Mapping[str, str], names: str) -> bool:
    return any(re.fullmatch(names, name) for name in given)


def _number(text: str) -> int | None:
    return int(text) if re.fullmatch(r"[1-9]\d{0,8}", text) else None
