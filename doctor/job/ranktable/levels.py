"""Form 2.0 (Ascend 950): `rank_list`, each rank with its addresses on each layer of the network."""

from __future__ import annotations

import re
from dataclasses import replace

from doctor.job.ranktable.fields import Fields, Node
from doctor.job.ranktable.model import Entry, Port, RankTable, Server
from doctor.text.textfile import shown

MOST_LEVELS = 8
_EID = re.compile(r"[0-9a-fA-F:]{1,256}")
_PORTS = ("device_port", "host_port")


def read_levels(fields: Fields, root: Node, frame: RankTable) -> RankTable:
    nodes = fields.objects(root, "rank_list")
    servers: dict[str, list[Entry]] = {}
    for node in nodes:
        entry = _rank(fields, node)
        servers.setdefault(entry.server, []).append(entry)
    if "rank_count" not in root:
        expected = f'"rank_count": {len(nodes)}'
        fields.complain(root, None, "rank_count is missing", expected, 'no "rank_count"')
    counts = tuple(fields.count(root, "rank_count", len(nodes), "ranks in rank_list"))
    grouped = (Server(id, None, tuple(entries), entries[0].spot) for id, entries in servers.items())
    return replace(frame, servers=tuple(grouped), counts=counts)


def _rank(fields: Fields, node: Node) -> Entry:
    rank, device = fields.number(node, "rank_id"), fields.number(node, "device_id")
    node = node.of(None, rank, device)
    local = fields.number(node, "local_id")
    ports = [(name, fields.number(node, name)) for name in _PORTS if name in node]
    addresses: list[str] = []
    eids: list[str] = []
    server = ""
    below = -1
    levels = fields.objects(node, "level_list")
    if len(levels) > MOST_LEVELS:
        fields.complain(node, "level_list", f"more than {MOST_LEVELS} levels", f"at most {MOST_LEVELS}")
    for level in levels:
        layer = fields.number(level, "net_layer")
        instance = fields.name(level, "net_instance_id") or ""
        if layer == 0:
            server = instance
        if layer is not None and (layer <= below or (below < 0 and layer > 0)):
            message = "net_layer is not in ascending order from 0"
            fields.complain(level, "net_layer", message, "0 first, then ascending")
        below = below if layer is None else layer
        for address in fields.objects(level, "rank_addr_list"):
            _address(fields, address, addresses, eids)
    return Entry(
        rank,
        server,
        device,
        addresses[0] if addresses else None,
        None,
        local,
        fields.places.spot(fields.at(node)),
        addresses=tuple(addresses),
        eids=tuple(eids),
        ports=tuple(Port(name, number) for name, number in ports if number is not None),
    )


def _address(fields: Fields, node: Node, addresses: list[str], eids: list[str]) -> None:
    kind = (fields.name(node, "addr_type") or "").upper()
    if kind in ("IPV4", "IPV6"):
        if not node.members.get("addr"):
            fields.complain(node, None, "addr is missing", "an address", 'no "addr"')
        addresses += fields.addresses(node, "addr")[:1]
    elif kind == "EID":
        eid = fields.name(node, "addr")
        if eid and not _EID.fullmatch(eid):
            fields.complain(node, "addr", "addr is not an EID", "hexadecimal digits", shown(eid))
        elif eid:
            eids.append(eid.lower())
    elif kind:
        fields.complain(node, "addr_type", "addr_type is not known", '"EID", "IPV4" or "IPV6"')
