"""Options and commands as other programs call them, and what they are called here."""

from collections.abc import Mapping

from doctor.text.hostprogram import table


def _pairs(name: str) -> tuple[tuple[str, str], ...]:
    """A word of other programs, and ours."""
    return tuple((other, ours) for ours, others in table(__file__, name) for other in others.split())


OPTIONS: Mapping[str, str] = dict(_pairs("otheroptions.txt"))
COMMANDS: Mapping[str, str] = dict(_pairs("othercommands.txt"))
SAID: Mapping[str, str] = dict(_pairs("othersaid.txt"))
"""The message for an option that has no counterpart here."""
