"""The hosts of the lab, for the tests in this folder."""

from tests.lab.fixtures import gpus, gpus2, gpus3, lab, lab4, make_lab, make_rack, rack, rack3, slurm, slurm4
from tests.support.faults import examine

__all__ = [
    "examine",
    "gpus",
    "gpus2",
    "gpus3",
    "lab",
    "lab4",
    "make_lab",
    "make_rack",
    "rack",
    "rack3",
    "slurm",
    "slurm4",
]
