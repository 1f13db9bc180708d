"""Fixtures for every test, and the list of what was left out."""

from tests.faults import examine
from tests.lab.fixtures import lab, lab4, make_lab
from tests.left_out import pytest_terminal_summary

__all__ = ["examine", "lab", "lab4", "make_lab", "pytest_terminal_summary"]
