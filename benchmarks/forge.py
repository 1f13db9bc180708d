"""Recordings of any number of hosts, made of the few of a demo: each host a copy of one of them, with names,
addresses, cards, devices and neighbours of its own. One host in 97 is a copy of a sick one.

    python -m benchmarks.forge npus 1000 big.run.json [--mesh] [--doubled]
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

DEMOS = Path(__file__).parents[1] / "doctor" / "demos"
GOOD = {"gpus": 3, "npus": 5}
"""The host of each demo that stands for all healthy ones."""
SICK_ONE_IN = 97
DEVICES = 8
OWN_WORDS = re.compile(
    r"\b(?:node(?P<name>\d)"
    r"|198\.18\.0\.1(?P<address>\d)"
    r"|10\.20\.(?P<device>\d)\.1(?P<number>\d)"
    r"|02:00:c6:12:00:0(?P<card>\d)"
    r"|GPU-0000000(?P<gpu>\d)"
    r"|fd00:c612::(?P<wide>[\da-f]+)"
    r"|fe80::c6ff:fe12:(?P<link>\d)"
    r"|V8BD6H00(?P<optic>\d)(?P<module>\d)"
    r"|400GE1/(?P<switch>\d)/)"
)
"""What says in an answer of a demo which of its hosts gave it, or which other host it speaks of."""


def forge(demo: str, hosts: int, *, mesh: bool, doubled: bool = False) -> dict[str, Any]:
    """The recording, as its JSON. With `doubled`, the devices of all hosts have the addresses of one."""
    recording: dict[str, Any] = json.loads(gzip.decompress((DEMOS / f"{demo}.run.json.gz").read_bytes()))
    answers = {int(name.removeprefix("node")): answer for name, answer in recording["heard"].items()}
    sick = [number for number in answers if number != GOOD[demo]]
    numbers = range(1, hosts + 1)
    known = recording["hosts"][0]
    recording["hosts"] = [{**known, "name": f"node{n}", "address": f"node{n}"} for n in numbers]
    recording["heard"] = {}
    for n in numbers:
        of = sick[n // SICK_ONE_IN % len(sick)] if n % SICK_ONE_IN == 0 else GOOD[demo]
        places = {other: _neighbour(n, (other - of) % len(answers), hosts) for other in answers}
        renamed = partial(OWN_WORDS.sub, partial(_renamed, places, doubled))
        said = {key: {**c, "stdout": renamed(c["stdout"])} for key, c in answers[of]["captures"].items()}
        recording["heard"][f"node{n}"] = {**answers[of], "host": f"node{n}", "captures": said}
    recording["mesh"] = _mesh(recording["mesh"], hosts) if mesh else None
    return recording


def _neighbour(n: int, distance: int, hosts: int) -> int:
    """Each host knows those at 1, 2, 4 … places behind it, as the sparse mesh and the pings choose them."""
    return n if not distance else (n - 1 + 2 ** (distance - 1)) % hosts + 1


def _renamed(places: dict[int, int], doubled: bool, word: re.Match[str]) -> str:
    kind, old = word.lastgroup or "", word[0]
    if kind == "number":
        place = places.get(int(word["device"]))
        at = DEVICES * (1 if doubled else place or 0) + int(word["number"])
        return f"10.20.{at >> 8}.{at & 255}" if place else old
    if kind == "module":
        place = places.get(int(word["optic"]))
        return f"V8BD6H{place:05}{word['module']}" if place else old
    place = places.get(int(word[kind], 16) - (10 if kind == "wide" else 0))
    if not place:
        return old
    return {
        "name": f"node{place}",
        "address": f"198.18.{place >> 8}.{place & 255}",
        "card": f"02:00:c6:12:{place >> 8:02x}:{place & 255:02x}",
        "wide": f"fd00:c612::{place:x}",
        "link": f"fe80::c6ff:fe12:{place:x}",
        "gpu": f"GPU-{place:08x}",
        "switch": f"400GE1/{place}/",
    }[kind]


def _mesh(seen: dict[str, Any], hosts: int) -> dict[str, Any]:
    link = next(link for link in seen["links"] if link["outcome"] == "ok")
    links = [
        {
            **link,
            "source": f"node{n}",
            "target": f"node{peer}",
            "address": f"198.18.{peer >> 8}.{peer & 255}",
            "kind": "master" if peer == 1 else "ephemeral",
        }
        for n, peer in _pairs(hosts)
    ]
    return {**seen, "shape": "sparse", "head": "node1", "listeners": [], "links": links}


def _pairs(hosts: int) -> Iterator[tuple[int, int]]:
    for n in range(1, hosts + 1):
        for distance in range(1, (hosts - 1).bit_length() + 1):
            if (peer := _neighbour(n, distance, hosts)) != n:
                yield n, peer


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.forge", description=__doc__)
    parser.add_argument("demo", choices=sorted(GOOD))
    parser.add_argument("hosts", type=int)
    parser.add_argument("output", type=Path)
    parser.add_argument("--mesh", action="store_true")
    parser.add_argument("--doubled", action="store_true")
    args = parser.parse_args()
    made = forge(args.demo, args.hosts, mesh=args.mesh, doubled=args.doubled)
    args.output.write_text(json.dumps(made))
    return 0


if __name__ == "__main__":
    sys.exit(main())
