"""Fixtures for every test, and the list of what was left out."""

import pytest
from hypothesis import settings

from tests.lab.fixtures import gpus, gpus2, lab, lab4, make_lab, make_rack, rack, rack3, slurm, slurm4
from tests.support.faults import examine
from tests.support.left_out import pytest_terminal_summary

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
    "slurm",
    "slurm4",
]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="also make the tests that are marked long")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in [] if config.getoption("--long") else items:
        if item.get_closest_marker("long"):
            item.add_marker(pytest.mark.skip(reason="one more of its kind: make test-all"))


# No test is about how fast this machine is just now.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
