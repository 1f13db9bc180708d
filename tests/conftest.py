"""Fixtures for every test, and the list of what was left out."""

from hypothesis import settings

from tests.faults import examine
from tests.lab.fixtures import gpus, gpus2, lab, lab4, make_lab, make_rack, rack, rack3
from tests.left_out import pytest_terminal_summary

__all__ = [
    "examine",
    "gpus",
    "gpus2",
    "lab",
    "lab4",
    "make_lab",
    "make_rack",
    "pytest_terminal_summary",
    "rack",
    "rack3",
]

# No test is about how fast this machine is just now.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
