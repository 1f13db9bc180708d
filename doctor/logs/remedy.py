"""Fills in what a symptom says to type: the host, the port and the file that the lines name."""

import re
import shlex
from collections.abc import Mapping, Sequence

from doctor.text.nodeset import fold

PLACES = (
    *("host", "hosts", "address", "port", "pid", "file", "library", "module", "device", "pci"),
    *("interface", "adapter", "disk", "server", "which", "jobid", "pod", "name"),
)
"""What may stand in braces: a group of the symptom's expressions, or the hosts that it is about."""
_PLACE = re.compile(rf"(?<!\$)\{{({'|'.join(PLACES)})\}}")
_PORT = re.compile(r"^([^:]*|\[[^\]]*\]):\d{1,5}$|<\d{1,5}>$")
_OF = ("", "guilty_", "peer_", "other_", "which_", "which_other_")


def filled(line: str, taken: Mapping[str, str], hosts: Sequence[str] = ()) -> str:
    """The line with these values; what is not known is written HOST, PORT. In a command they are quoted."""
    known = {"host": hosts[0], "hosts": fold(hosts)} if hosts else {}

    def value(found: re.Match[str]) -> str:
        name = found[1]
        said = known.get(name) or next((taken[of + name] for of in _OF if taken.get(of + name)), "")
        if not said:
            return name.upper()
        said = _PORT.sub(r"\1", said) if name == "address" else said
        return said if line.startswith("#") else shlex.quote(said)

    return _PLACE.sub(value, line)
