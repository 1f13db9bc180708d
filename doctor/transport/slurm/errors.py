"""Why a host could not be asked through Slurm, as sentences."""

import shlex

from doctor.transport.errors import CannotReach, cannot
from doctor.transport.slurm.output import NODE_FAILURE, DownNode, SrunMessages


def down(node: DownNode) -> CannotReach:
    said = f": {node.reason}" if node.reason and node.reason != "(null)" else ""
    return cannot("node down", node.reason, node=shlex.quote(node.name), state=node.state, said=said)


def no_step(words: SrunMessages, rc: int | None) -> CannotReach:
    """The whole step failed; nothing is known against this node."""
    if words.fate:
        return cannot(words.fate, words.first)
    said = f": {words.first}" if words.first else f" (exit status {rc})" if rc else ""
    return cannot("no step", words.first, said=said)


def broke(name: str, words: SrunMessages) -> CannotReach:
    """The program had begun, and its task ended before it had finished."""
    if words.fate and words.ended.get(name) != NODE_FAILURE:
        summary = cannot(words.fate).summary
    elif name in words.ended:
        summary = f"Its task ended while the host was working; Slurm says: {words.ended[name]}."
    else:
        said = f" srun says: {words.first}." if words.first else ""
        summary = f"Its task ended while the host was working.{said}"
    return cannot("task ended", words.first, node=shlex.quote(name), summary=summary)
