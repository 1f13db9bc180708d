"""An interpreter for emulated NPUs: the tests' own, with the emulated torch_npu on its path.

It is a wrapper, as people give to `--python`, that first reads the `set_env.sh` of an emulated CANN.
"""

import shutil
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from shlex import quote

from .emulated import EMULATORS
from .npu_products import Product

SITE = EMULATORS / "python"


@dataclass(frozen=True, slots=True)
class TorchNpu:
    """How torch_npu is installed, and how the devices behave with it. `wavers` is "default" if sums come out
    differently each time until determinism is switched on, and "always" if that does not help.
    """

    wavers: str = ""
    version: str = ""
    """The same as torch's by default."""
    installed: bool = True
    sourced: bool = True
    """Whether the wrapper reads CANN's set_env.sh."""


def write(own: Path, seen: str, product: Product, way: TorchNpu) -> None:
    """Write CANN and the interpreter `npu-python` into a folder; `seen` is its path for the users."""
    (own / "lib64").mkdir(parents=True, exist_ok=True)
    (own / "lib64" / "libhccl.so").write_text("An emulated library: only its name is looked for.\n")
    (own / "set_env.sh").write_text(
        f"export ASCEND_HOME_PATH={quote(seen)} ASCEND_OPP_PATH={quote(seen)}/opp\n"
        f"export LD_LIBRARY_PATH={quote(seen)}/lib64:$LD_LIBRARY_PATH\n"
    )
    version = way.version or f"{metadata.version('torch').partition('+')[0]}+emulated"
    described = own / "site" / f"torch_npu-{version}.dist-info"
    shutil.rmtree(described.parent, ignore_errors=True)
    described.mkdir(parents=True)
    (described / "METADATA").write_text(f"Name: torch_npu\nVersion: {version}\n")
    variables = {
        "EMULATED_NPU": product.name,
        "EMULATED_NPU_DEVICES": str(product.devices),
        "EMULATED_NPU_CANN": product.cann,
        "EMULATED_NPU_OS": f"{seen}/os",
        "EMULATED_NPU_WAVERS": way.wavers,
        "EMULATED_NPU_VERSION": version,
    }
    if way.installed:
        variables["PYTHONPATH"] = f"{SITE}:{seen}/site"
    lines = [
        "#!/bin/sh",
        *([f". {quote(seen)}/set_env.sh"] if way.sourced else []),
        *(f"export {name}={quote(value)}" for name, value in variables.items()),
        f'exec {quote(sys.executable)} "$@"',
    ]
    wrapper = own / "npu-python"
    wrapper.write_text("\n".join(lines) + "\n")
    for path in (own, own / "lib64", described.parent, described):
        path.chmod(0o755)
    wrapper.chmod(0o755)
