"""An EMULATED torch_npu without an NPU: its tensors are in the memory of the CPU.

It has the names of the real package that a training uses, and refuses what the real one refuses on the
emulated product. Only the lab puts it on the path of an interpreter (`tests/lab/npu_python.py`).
"""

from __future__ import annotations

from . import libraries

libraries.load()

import torch  # noqa: E402
from torch.utils import backend_registration  # noqa: E402

from . import npu, products  # noqa: E402
from .hccl import make_group  # noqa: E402

__version__ = products.version()

backend_registration._setup_privateuseone_for_python_backend("npu", backend_module=npu)
torch.distributed.Backend.register_backend("hccl", make_group, devices=["npu"])
