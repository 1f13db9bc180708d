"""Runs our modules from memory: nothing is written to the host.

The text of this module is the head of the program that is sent, and `begin` receives the whole program. It
runs on Python 3.6 and later. Modules that pass the program on import this one as an ordinary module.
"""

import base64
import importlib
import json
import linecache
import sys
import types
import zlib
from importlib.machinery import ModuleSpec
from typing import Any

SELF = "doctor.agents.onhost.bundle"

# Reads exactly the program from stdin and no byte after it: a buffered stdin would take more.
# It contains no quotes, because it is quoted for a shell.
_READ = (
    "import os, sys; b = bytearray(); "
    "any(iter(lambda: b.extend(os.read(0, {whole} - len(b)) or sys.exit(4)) or len(b) == {whole}, None)); "
    "exec(bytes(b[:{head}])); begin(bytes(b[:{size}]), {head}, sys.argv[1])"
)


class BundleImporter:
    """Finds and loads modules whose source is in memory."""

    def __init__(self, sources: "dict[str, str]") -> None:
        self.sources = sources

    def find_spec(self, name: str, *_: Any) -> "ModuleSpec | None":
        if name not in self.sources:
            return None
        return ModuleSpec(name, self, origin=name.replace(".", "/") + ".py")  # type: ignore[arg-type]

    def create_module(self, _: ModuleSpec) -> None:
        """None: Python makes an ordinary module."""

    def exec_module(self, module: types.ModuleType) -> None:
        source = self.sources[module.__name__]
        module.__file__ = file = module.__name__.replace(".", "/") + ".py"
        # So that a traceback shows the lines of a file that does not exist.
        linecache.cache[file] = (len(source), None, source.splitlines(True), file)
        exec(compile(source, file, "exec", dont_inherit=True), module.__dict__)


def begin(program: bytes, head: int, name: str) -> None:
    """Make our modules importable and run the `main` of one of them."""
    sys.path[:] = [folder for folder in sys.path if folder]
    sources = json.loads(zlib.decompress(base64.b64decode(program[head:])).decode("utf-8"))
    for source in sources:
        parts = source.split(".")
        for package in (".".join(parts[:depth]) for depth in range(1, len(parts))):
            if package not in sys.modules:
                sys.modules[package] = types.ModuleType(package)
                sys.modules[package].__path__ = []
    sys.meta_path.insert(0, BundleImporter(sources))
    importlib.import_module(name).main(program, head)


def pack(sources: "dict[str, str]") -> "tuple[bytes, int]":
    """The program that holds these modules, including this one, and the size of its head."""
    head = sources[SELF].encode("utf-8")
    return head + base64.b64encode(zlib.compress(json.dumps(sources).encode("utf-8"), 9)), len(head)


def reader(program: bytes, head: int, rest: int = 0) -> str:
    """The code for `python -c`; `rest` is how many bytes after the program are read and discarded."""
    return _READ.format(whole=len(program) + rest, size=len(program), head=head)


def command(python: str, program: bytes, head: int, name: str) -> "list[str]":
    return [python, "-B", "-c", reader(program, head), name]
