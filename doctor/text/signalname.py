"""Numbers of signals as people know them."""

import signal

SAID = {"Illegal instruction": 4, "Aborted": 6, "Bus error": 7, "Floating point exception": 8}
SAID |= {
    "Killed": 9,
    "Segmentation fault": 11,
    "Terminated": 15,
    "Abort": 6,
    "Illegal hardware instruction": 4,
}
"""How Slurm and shells call a signal that ended a program."""


def signal_number(said: str) -> int | None:
    """The number of a signal by its number, its name or what shells say: 9, SIGKILL, Killed."""
    if said.isdecimal() and len(said) < 4:
        return int(said)
    return SAID.get(said.capitalize()) or (
        signal.Signals[said].value if said in signal.Signals.__members__ else None
    )


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
