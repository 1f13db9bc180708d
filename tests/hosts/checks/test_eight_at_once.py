"""Eight faults of eight kinds in one examination, each on a host of its own; the ninth host is healthy."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.hosts.checks import test_kernel, test_memory, test_names, test_network
from tests.lab import Lab
from tests.support.batches import prove_each
from tests.support.faults import Examiner

FAULTS = {
    **{name: test_kernel.FAULTS[name] for name in ("NUMA balancing", "ten ephemeral ports", "open files")},
    **{name: test_memory.FAULTS[name] for name in ("Docker's shm", "full tmp", "tmp read-only")},
    "a minute ahead": test_names.FAULTS["a minute ahead"],
    "no loopback": test_network.FAULTS["no loopback"],
}


@pytest.mark.main
def test_each_is_found_on_its_host(make_lab: Callable[..., Lab], tmp_path: Path) -> None:
    lab = make_lab(9)
    prove_each(FAULTS, replace(Examiner(lab, tmp_path), names="node[1-9]"))
