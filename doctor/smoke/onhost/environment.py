"""The variables of the ranks' interpreter; those that choose interfaces are the login's and the launch's."""

import os
from collections.abc import Mapping


def environment(given: "Mapping[str, str]") -> "dict[str, str]":
    """The login's variables, the requested ones, and what a quiet run needs."""
    chosen = dict(os.environ)
    chosen.update(given)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        chosen[name] = "1"
    chosen["PYTHONDONTWRITEBYTECODE"] = chosen["PYTHONUNBUFFERED"] = "1"
    # A device's library starts threads and must not be loaded before the ranks are forked:
    # https://docs.pytorch.org/tutorials/unstable/python_extension_autoload.html
    chosen["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    # The last words of a rank should be its own, not torch's remarks on names and on coming changes.
    chosen.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    chosen.setdefault("PYTHONWARNINGS", "ignore")
    return chosen
