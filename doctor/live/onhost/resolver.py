"""The addresses that names have on this host, as the job's own processes would get them."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from doctor.live.onhost.careful import Tool, run_all

SECONDS = 5.0
MOST, MOST_NAMES, MOST_ADDRESSES = 65536, 4, 16


def resolved(names: "Sequence[str]", seconds: float) -> "list[dict[str, Any]]":
    """Each name with its addresses, or with the reason why there are none."""
    names = [name for name in names if not name.startswith("-")][:MOST_NAMES]
    starts = [partial(Tool, ["getent", "ahosts", name], seconds, MOST) for name in names]
    found = [{"name": name, "problem": "getent did not answer"} for name in names]  # type: list[dict[str, Any]]
    try:
        for place, tool, code in run_all(starts, MOST_NAMES):
            words = [line.split()[:1] for line in tool.out.decode("utf-8", "replace").splitlines()]
            addresses = list(dict.fromkeys(word[0][:256] for word in words if word))[:MOST_ADDRESSES]
            ended = "no address was found" if code == 2 else f"getent ends with {code}, without an address"
            problem = "" if addresses else tool.why or ended
            found[place] = {"name": names[place], "addresses": addresses, "problem": problem[:200]}
    except OSError as error:
        return [dict(one, problem=f"getent: {error.strerror}") for one in found]
    return found
