"""Parses what srun and scontrol print: which nodes failed and why, the fate of the step, the nodes that are
down, and the nodes that the job still has.

Pure. Everything quoted is bounded and printable. The wordings are those of Slurm 20.11 to 25.05.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from doctor.errors import UsageError
from doctor.text.hostprogram import sections
from doctor.text.nodeset import unfold
from doctor.transport.errors import quoted

NODE_FAILURE = "Node failure"
_WHO = re.compile(r"^(?:srun|slurmstepd(?:-[\w.-]+)?|slurmd(?:-[\w.-]+)?): (?:error: |fatal: )?")
_LAUNCH = re.compile(r"Task launch for (?:StepId=)?\S+ failed on node ([\w.-]+): (.+)")
_NODE_FAILED = re.compile(r"Node failure on ([\w.-]+)")
_TASK_ENDED = re.compile(r"^([\w.-]+): tasks? [\d,\- ]+: (.+)")
_FATES = sections(__file__, "output.txt")["fates"]
_UNKNOWN_OPTION = re.compile(r"unrecognized option '?(--[\w-]+)|invalid option.*?(--[\w-]+)")
_SECONDARY = re.compile(
    r"Application launch failed|Job step aborted|Waiting up to|forcing|retrying|StepId=\S+ aborted|"
    r"lacks support for cpu binding"
)


@dataclass(frozen=True, slots=True)
class SrunMessages:
    """What srun printed about one step."""

    refused: dict[str, str]
    """Node -> why no task began there, in Slurm's words."""
    ended: dict[str, str]
    """Node -> what ended its task."""
    fate: str = ""
    """cancelled, time-limit, node-failure, preempted, no-job or no-contact, if srun said so."""
    option: str = ""
    """An option that this srun does not know."""
    first: str = ""
    """The first meaningful line, for failures that are not listed here."""


def read_words(lines: Iterable[str]) -> SrunMessages:
    refused: dict[str, str] = {}
    ended: dict[str, str] = {}
    fate = option = first = ""
    for line in lines:
        text = _WHO.sub("", line.strip())
        if not text:
            continue
        if found := _LAUNCH.search(text):
            refused.setdefault(found[1], quoted(found[2]))
        elif found := _NODE_FAILED.search(text):
            ended.setdefault(found[1], NODE_FAILURE)
        elif found := _TASK_ENDED.search(text):
            ended.setdefault(found[1], quoted(found[2]))
        fates = (name for name, words in _FATES.items() if re.search(words, text, re.IGNORECASE))
        fate = fate if fate and fate != "cancelled" else next(fates, fate)
        if found := _UNKNOWN_OPTION.search(text):
            option = option or found[1] or found[2]
        if not first and not _SECONDARY.search(text):
            first = quoted(text, 200)
    return SrunMessages(refused, ended, fate, option, first)


_NODE = re.compile(r"^NodeName=(\S+) ", re.MULTILINE)
_STATE = re.compile(r" State=(\S+)")
_REASON = re.compile(r" Reason=(.*?)(?: (?:Comment|ResumeAfterTime|Extra|InstanceId|InstanceType)=|$)")
_OUT = re.compile(
    r"\*|\b(?:DOWN|NOT_RESPONDING|FAIL|POWERED_DOWN|POWERING_DOWN|POWER_DOWN|REBOOT_ISSUED|FUTURE)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class DownNode:
    """A node that Slurm itself does not reach, with the reason that it gives."""

    name: str
    state: str
    reason: str


def down_nodes(text: str) -> list[DownNode]:
    """Nodes in `scontrol show node -o` that can run no step. Older versions write `*` for NOT_RESPONDING."""
    found = []
    for line in text.splitlines():
        name, state = _NODE.match(line), _STATE.search(line)
        if name and state and _OUT.search(state[1]):
            reason = _REASON.search(line)
            found.append(DownNode(name[1], quoted(state[1], 60), quoted(reason[1], 160) if reason else ""))
    return found


_NODES = re.compile(r"^JobId=.* NodeList=([^\s(]\S*)", re.MULTILINE)


def job_nodes(text: str) -> frozenset[str]:
    """The nodes that a job has now, by `scontrol show job -o`; empty if it does not say."""
    try:
        return frozenset(node for nodes in _NODES.findall(text) for node in unfold(nodes))
    except UsageError:
        return frozenset()
