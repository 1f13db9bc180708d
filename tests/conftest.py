"""Fixtures for every test."""

from tests.lab.fixtures import lab, lab4, make_lab

__all__ = ["lab", "lab4", "make_lab"]
