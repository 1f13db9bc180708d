"""Sizes of the model, its parallel groups and its batch in the command of a rank: by the options of Megatron,
or in the configuration of DeepSpeed.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from doctor.job.launch.launchers.deepspeed import BATCH, CONFIGS, READS_CONFIG
from doctor.text.hostprogram import sections

_TOLD = sections(__file__, "sizes.txt")
_GROUPS, _OTHERS, _NOT_MEANT = _TOLD["groups"], _TOLD["others"], _TOLD["not meant"]
"""Size -> options with which its rule is another one."""
_ELSEWHERE, _DIVIDES_MODEL, _DIFFERS = map(re.compile, _TOLD["words"].values())
_TRAINER = rf"\b(?:Seq2Seq)?Trainer\(|{READS_CONFIG}"


def sizes_in(
    words: Sequence[str], text: str, read: Callable[[str], str | None], alone: bool
) -> dict[str, int]:
    """The sizes that these words of a script state, or a configuration that they name. `read` returns a file.
    `alone`: nothing else may have changed one.

    Groups that they do not divide count as 1 if no word is unknown.
    """
    return _of_megatron(words) or _of_deepspeed(words, text, read, alone)


def _of_deepspeed(
    words: Sequence[str], text: str, read: Callable[[str], str | None], alone: bool
) -> dict[str, int]:
    """The sizes of the batch; without groups if the model may be divided, or the configuration changed."""
    option, file, config = configuration_of(words, read)
    place = _program(words)
    program = read(words[place]) or ""
    names = {re.sub(r"^-+|=.*", "", word) for word in words if word.startswith("-")} | _variables(text)
    if any(map(_DIVIDES_MODEL.search, (*names, *map(str, config)))):
        return {}
    sizes = {key: size for key, name in BATCH.items() if (size := _number(str(config.get(name))))}
    more = any(re.search(r"\.(?:ya?ml|json|py)$", word) and file not in word for word in words[place + 1 :])
    reads = re.search(_TRAINER if option == CONFIGS[0] else re.escape(READS_CONFIG), program)
    replicas = reads and not more and _is_whole(words) and alone
    return ({"tp": 1, "pp": 1, "cp": 1} if replicas else {}) | sizes if "global_batch" in sizes else {}


def configuration_of(
    words: Sequence[str], read: Callable[[str], str | None]
) -> tuple[str, str, dict[str, Any]]:
    """The option that names DeepSpeed's configuration, its file, and what it says; nothing if the program
    may change it.
    """
    given = _options(words)
    option = next((name for name in CONFIGS if given.get(name, "")[-5:] == ".json"), "")
    try:
        config = json.loads((option and read(given[option])) or "0")
    except (ValueError, RecursionError):
        config = None
    changed = not isinstance(config, dict) or _DIFFERS.search(read(words[_program(words)]) or "")
    return option, given.get(option, ""), {} if changed else config


@lru_cache(16)
def _variables(text: str) -> set[str]:
    return set(re.findall(r"\b(\w{1,60})=", text))


def _program(words: Sequence[str]) -> int:
    """The position of the program, behind which all words are its own."""
    return next((place for place, word in enumerate(words) if word.endswith(".py")), 0)


def _is_whole(words: Sequence[str]) -> bool:
    return not any(re.match(r"[$`]", word) for word in words[_program(words) :])


def _of_megatron(words: Sequence[str]) -> dict[str, int]:
    given = _options(words)
    if not given.keys() & {*_GROUPS.values(), "micro_batch_size"} or _has(given, _ELSEWHERE.pattern):
        return {}
    found = {key: _number(given.get(name, "")) for key, name in (_GROUPS | _OTHERS).items()}
    whole = _is_whole(words)
    for key, name in _GROUPS.items():
        found[key] = 1 if whole and name not in given else found[key]
    if "group_query_attention" not in given:
        found["kv_heads"] = None
    if found["ep"] is None:
        found["experts"] = None
    if re.search(r"--(?:micro_batch|context_parallel|seq|train)_", " ".join(words)):  # Megatron has hyphens
        found |= dict.fromkeys(("sequence", "positions", "iterations", "samples"))
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
            found[name.replace("-", "_")] = value if equals else "" if after.startswith("--") else after
    return found


def _has(given: Mapping[str, str], names: str) -> bool:
    return any(re.fullmatch(names, name) for name in given)


def _number(text: str) -> int | None:
    return int(text) if re.fullmatch(r"[1-9]\d{0,8}", text) else None
