"""Errors of the lab itself, as opposed to the faults that it injects."""


class LabError(Exception):
    """The lab failed at a task; the text names the command and its output."""
