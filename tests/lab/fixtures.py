"""The lab as pytest fixtures; `conftest.py` makes them known to every test."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from .gpus import Gpus, fit_gpus
from .lab import Lab
from .needs import missing
from .npus import Rack, fit_npus
from .slurm import Slurm
from .slurm import missing as no_slurm


@pytest.fixture(scope="session")
def lab4() -> Iterator[Lab]:
    """Four hosts for the whole session. Tests use `lab`, which also repairs them after each test."""
    if reason := missing():
        pytest.skip(reason)
    with Lab(4) as lab:
        yield lab


@pytest.fixture
def lab(lab4: Lab) -> Iterator[Lab]:
    """Four healthy hosts, node1 to node4; what a test breaks is repaired after it."""
    yield lab4
    lab4.reset()


@pytest.fixture
def make_lab() -> Iterator[Callable[..., Lab]]:
    """`make_lab(32)` boots a lab of its own for one test; the arguments are those of `Lab`."""
    if reason := missing():
        pytest.skip(reason)
    with ExitStack() as labs:
        yield lambda *args, **options: labs.enter_context(Lab(*args, **options))


@pytest.fixture(scope="module")
def rack3() -> Iterator[Rack]:
    """Three hosts with eight NPUs each. Tests use `rack`, which also repairs them before each test."""
    if reason := missing():
        pytest.skip(reason)
    with Lab(3) as lab:
        rack = fit_npus(lab)
        yield rack
        rack.free()


@pytest.fixture
def rack(rack3: Rack) -> Rack:
    """Three healthy hosts of Atlas A2, node1 to node3; `rack.lab` is their lab."""
    rack3.lab.reset()
    rack3.reset()
    return rack3


@pytest.fixture
def make_rack(make_lab: Callable[..., Lab]) -> Iterator[Callable[..., Rack]]:
    """`make_rack("atlas-a3", hosts=2)` boots a lab with NPUs of its own for one test."""
    with ExitStack() as racks:

        def make(product: str = "atlas-a2", **options: int) -> Rack:
            rack = fit_npus(make_lab(**options), product)
            racks.callback(rack.free)
            return rack

        yield make


@pytest.fixture(scope="module")
def gpus2() -> Iterator[Gpus]:
    """Two hosts with eight GPUs each. Tests use `gpus`, which also repairs them before each test."""
    if reason := missing():
        pytest.skip(reason)
    with Lab(2) as lab:
        yield fit_gpus(lab)


@pytest.fixture(scope="module")
def gpus3() -> Iterator[Gpus]:
    """Three hosts with eight GPUs each, which `GpuExaminer` repairs before each test."""
    if reason := missing():
        pytest.skip(reason)
    with Lab(3) as lab:
        yield fit_gpus(lab)


@pytest.fixture
def gpus(gpus2: Gpus) -> Gpus:
    """Two healthy hosts with NVIDIA H100, node1 and node2; `gpus.lab` is their lab."""
    gpus2.lab.reset()
    gpus2.reset()
    return gpus2


@pytest.fixture(scope="session")
def slurm4() -> Iterator[Slurm]:
    """A Slurm of four hosts for the whole session. Tests use `slurm`, which also repairs them after each
    test.
    """
    if reason := missing() or no_slurm():
        pytest.skip(reason)
    with Lab(4) as lab:
        slurm = Slurm(lab).start()
        yield slurm
        slurm.close()


@pytest.fixture
def slurm(slurm4: Slurm) -> Iterator[Slurm]:
    """Four idle nodes, node1 to node4, in a Slurm of their own; `slurm.lab` is their lab."""
    yield slurm4
    slurm4.reset()
