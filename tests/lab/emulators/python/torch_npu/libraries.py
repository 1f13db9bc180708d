"""Loads CANN's libraries, which `set_env.sh` puts on the path, and those of torch if the versions match."""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path

import torch

from . import products


def load() -> None:
    version = products.version()
    if products.base(version) != products.base(torch.__version__):
        raise ImportError(
            f"{Path(__file__).parent}/lib/libtorch_npu.so: undefined symbol: _ZNK3c1010TensorImpl4sizeEl"
        )
    folders = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    if any(folder and (Path(folder) / "libhccl.so").exists() for folder in folders):
        return
    package = "compiler" if "ASCEND_OPP_PATH" in os.environ else "cann"
    error = ImportError(
        "libhccl.so: cannot open shared object file: No such file or directory. "
        f"Please check that the {package} package is installed. "
        "Please run 'source set_env.sh' in the CANN installation path."
    )
    if products.base(version).startswith("2.1."):  # the library ended the process, with status 0
        traceback.print_exception(error)
        sys.exit()
    raise error
