"""Recordings of any number of hosts, made from the few hosts of a demo: each host is a copy of one of them,
with its own names, addresses, cards, devices and neighbours. One in 97 is a copy of a sick host: its clock is
wrong by its own amount, and no host can connect to it.
"""

import gzip
import json
import re
import socket
from functools import partial
from pathlib import Path
from typing import Any

DEMOS = Path(__file__).parents[1] / "doctor" / "demos"
GOOD = {"gpus": 3, "npus": 5}
"""The host of each demo from which all healthy hosts are copied."""
ONE_IN = 97
DEVICES = 8
REACH = 12
"""Hosts that each host connects to, as in the sparse mesh of 4,096."""
WALLS = Path(__file__).parents[1] / "tests" / "samples" / "firewall" / "firewalld_rich.nft.json"
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
"""The parts of an answer that show which host of the demo gave it, or which other host it names."""


def forge(
    demo: str,
    hosts: int,
    *,
    mesh: bool,
    doubled: bool = False,
    walled: bool = False,
    barred: bool = False,
    copied: bool = False,
    one_in: int = ONE_IN,
) -> dict[str, Any]:
    """The recording, as its JSON. With `doubled`, the devices of all hosts have the same addresses. With
    `walled`, each host has a firewall that keeps out a few of the others. With `barred`, each host has a
    route that discards what it sends to about half of them. With `copied`, all hosts have the MAC address of
    the first, as machines that were copied.
    """
    recording: dict[str, Any] = json.loads(gzip.decompress((DEMOS / f"{demo}.run.json.gz").read_bytes()))
    answers = {int(name.removeprefix("node")): answer for name, answer in recording["heard"].items()}
    models = [number for number in answers if number != GOOD[demo]]
    known = recording["hosts"][0]
    recording["hosts"] = [{**known, "name": f"node{n}", "address": f"node{n}"} for n in range(1, hosts + 1)]
    recording["heard"] = {}
    for n in range(1, hosts + 1):
        sick = n % one_in == 0
        of = models[n // one_in % len(models)] if sick else GOOD[demo]
        places = {other: _neighbour(n, (other - of) % len(answers), hosts) for other in answers}
        renamed = partial(OWN_WORDS.sub, partial(_renamed, places, doubled, copied))
        said = {key: {**c, "stdout": renamed(c["stdout"])} for key, c in answers[of]["captures"].items()}
        for name in ("clock", "clock-end") if sick else ():
            said[name]["stdout"] = str(float(said[name]["stdout"]) + 60 + n)
        if walled:
            said["firewall"]["stdout"] = f"== nft\n{WALLS.read_text().strip()}\n== end 0"
        if barred:
            table = said["routes"]["stdout"].rstrip()
            said["routes"]["stdout"] = f"{table}\n/proc/net/route:{_blackhole(hosts)}\n"
        recording["heard"][f"node{n}"] = {**answers[of], "host": f"node{n}", "captures": said}
    recording["mesh"] = _mesh(recording["mesh"], hosts, one_in) if mesh else None
    return recording


def _blackhole(hosts: int) -> str:
    """The line of /proc/net/route for half of the addresses."""
    below = 1 << (hosts.bit_length() - 1)
    mask = socket.htonl(0x1_0000_0000 - below)
    return f"*\t000012C6\t00000000\t0005\t0\t0\t0\t{mask:08X}\t0\t0\t0"


def _neighbour(n: int, distance: int, hosts: int) -> int:
    """Each host knows the hosts at 1, 3, 6, 10 … places behind it: some near, some far."""
    return (n - 1 + distance * (distance + 1) // 2) % hosts + 1


def _renamed(places: dict[int, int], doubled: bool, copied: bool, word: re.Match[str]) -> str:
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
        "card": "02:00:c6:12:00:01" if copied else f"02:00:c6:12:{place >> 8:02x}:{place & 255:02x}",
        "wide": f"fd00:c612::{place:x}",
        "link": f"fe80::c6ff:fe12:{place:x}",
        "gpu": f"GPU-{place:08x}",
        "switch": f"400GE1/{place}/",
    }[kind]


def _mesh(seen: dict[str, Any], hosts: int, one_in: int) -> dict[str, Any]:
    link = next(link for link in seen["links"] if link["outcome"] == "ok")
    listener = next(each for each in seen["listeners"] if each["kind"] == "ephemeral")
    links = [
        {
            **link,
            "source": f"node{n}",
            "target": f"node{peer}",
            "address": f"198.18.{peer >> 8}.{peer & 255}",
            "kind": "master" if peer == 1 else "ephemeral",
            "outcome": "ok" if peer % one_in else "dropped",
        }
        for n in range(1, hosts + 1)
        for peer in {_neighbour(n, distance, hosts) for distance in range(1, REACH + 1)} - {n}
    ]
    listeners = [{**listener, "host": f"node{n}"} for n in range(1, hosts + 1)]
    return {**seen, "shape": "sparse", "head": "node1", "listeners": listeners, "links": links}
