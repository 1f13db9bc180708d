"""Runs `doctor ARGS` as its users do, and prints at the end, on stderr, where the time went.

Run by `benchmarks.peers` and `benchmarks.preflight` on the controller; its clock starts when the interpreter
does.
"""

import functools
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

MARK = "split: "


def main() -> None:
    began = time.time() - _age()
    from doctor.cli import run
    from doctor.exam import collect, examination, smoke_rounds
    from doctor.transport.routing import RoutedTransport

    clock = Clock()
    clock.around(RoutedTransport, "program", "connect")
    clock.around(collect.Collection, "_probe", "probe")
    clock.around(collect.Collection, "_mesh", "mesh")
    clock.around(examination, "build_report", "judge")
    clock.around(smoke_rounds, "run_smoke", "smoke")
    clock.around(examination, "deliver", "report")
    loaded = time.time()
    code = run(sys.argv[1:])
    ended = time.time()
    spent = clock.spent()
    spent["probe"] -= spent["connect"]
    spent["start"] = loaded - began
    spent["rest"] = ended - began - sum(spent.values())
    print(MARK + json.dumps(spent), file=sys.stderr)
    sys.exit(code)


class Clock:
    """When each step was in progress. Connecting, in many threads, lasts from the first start to the last
    end.
    """

    def __init__(self) -> None:
        self._spans: dict[str, list[tuple[float, float]]] = {}
        self._lock = threading.Lock()

    def around(self, owner: Any, name: str, step: str) -> None:
        inner: Callable[..., Any] = getattr(owner, name)

        @functools.wraps(inner)
        def timed(*args: Any, **kwargs: Any) -> Any:
            began = time.time()
            try:
                return inner(*args, **kwargs)
            finally:
                with self._lock:
                    self._spans.setdefault(step, []).append((began, time.time()))

        setattr(owner, name, timed)

    def spent(self) -> dict[str, float]:
        """The time of connections that the mesh makes or uses belongs to the mesh."""
        later = min((began for began, _ in self._spans.get("mesh", ())), default=float("inf"))
        first = [span for span in self._spans.get("connect", ()) if span[0] < later]
        total = {"connect": max(e for _, e in first) - min(b for b, _ in first) if first else 0.0}
        for step in ("probe", "mesh", "smoke", "judge", "report"):
            total[step] = sum(ended - began for began, ended in self._spans.get(step, ()))
        return total


def _age() -> float:
    """How long ago the kernel started this process."""
    ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    uptime = float(Path("/proc/uptime").read_text().split()[0])
    return uptime - ticks / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
