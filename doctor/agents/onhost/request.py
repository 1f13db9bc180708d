"""What an agent is asked that has only one question to answer."""

import json
import os
import sys
import threading
from typing import Any


def one_request() -> "dict[str, Any]":
    """The first line of stdin. If the controller closes stdin after it, the program ends."""
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            sys.exit(4)
        line += byte
    threading.Thread(target=_end_with_stdin, daemon=True).start()
    return dict(json.loads(line.decode("ascii")))


def _end_with_stdin() -> None:
    while os.read(0, 4096):
        pass
    os._exit(1)
