"""The network devices to which chains belong: `nft -j` leaves them out before version 1.0.9.

`nft list chains` shows them, in words:

    table netdev early {
            chain entry {
                    type filter hook ingress device "eth0" priority filter; policy accept;
"""

import re
from collections.abc import Mapping

_TABLE = re.compile(r"table (\S+) (\S+) \{")
_CHAIN = re.compile(r"\s+chain (\S+) \{")
_HOOK = re.compile(r"\s+type \S+ hook (?:in|e)gress devices? (?:= )?(\{[^}]*\}|\S+) priority ")


def parse_devices(text: str) -> Mapping[tuple[str, str, str], tuple[str, ...]]:
    """Family, table and chain -> the devices."""
    found: dict[tuple[str, str, str], tuple[str, ...]] = {}
    family = table = chain = ""
    for line in text.splitlines():
        if begun := _TABLE.match(line):
            family, table = begun.groups()
        elif begun := _CHAIN.match(line):
            chain = begun[1]
        elif begun := _HOOK.match(line):
            found[family, table, chain] = tuple(re.findall(r'[^\s{},"]+', begun[1]))
    return found
