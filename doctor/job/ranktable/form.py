"""Detect the form of a file, and read form 2.0 (Ascend 950): `rank_list`, with addresses on each layer.

The lists in the file decide its form, and the version that it states must agree.
"""

import re
from dataclasses import replace

from doctor.job.ranktable.fields import Fields, TableNode
from doctor.job.ranktable.flaws import said
from doctor.job.ranktable.model import Form, RankEntry, RankTable, Server
from doctor.job.ranktable.servers import LAB_KEYS, LAB_WORDS
from doctor.model import Severity
from doctor.text.grouped import grouped
from doctor.text.textfile import shown

MOST_LEVELS = 8
_EID = re.compile(r"[0-9a-fA-F:]{1,256}")
_NET_TYPES = ("1DMESH", "2DMESH", "A3_SERVER", "A2_AX_SERVER", "TOPO_FILE_DESC", "CLOS")
_PORTS = ("device_port", "host_port")


def read_levels(fields: Fields, root: TableNode, frame: RankTable) -> RankTable:
    nodes = fields.objects(root, "rank_list")
    servers = grouped((entry.server, entry) for entry in [_rank(fields, node) for node in nodes])
    if "rank_count" not in root:
        fields.complain(root, None, "rank_count is missing", f'"rank_count": {len(nodes)}', 'no "rank_count"')
    counts = tuple(fields.count(root, "rank_count", len(nodes), "ranks in rank_list"))
    found = (Server(id, None, tuple(entries), entries[0].spot) for id, entries in servers.items())
    return replace(frame, servers=tuple(found), counts=counts)


def _rank(fields: Fields, node: TableNode) -> RankEntry:
    rank, device = fields.number(node, "rank_id"), fields.number(node, "device_id")
    node = node.of(None, rank, device)
    local = fields.number(node, "local_id")
    ports = fields.ports(node, _PORTS)
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
        if level.members.get("net_type", "CLOS") not in _NET_TYPES:
            fields.complain(level, "net_type", "net_type is not known", f"one of {', '.join(_NET_TYPES)}")
        if layer is not None and (layer <= below or (below < 0 and layer > 0)):
            fields.complain(level, "net_layer", *said("layers"))
        below = below if layer is None else layer
        for address in fields.objects(level, "rank_addr_list"):
            _address(fields, address, addresses, eids)
    return RankEntry(
        rank,
        server,
        device,
        fields.places.spot(fields.at(node)),
        tuple(addresses),
        local=local,
        eids=tuple(eids),
        ports=ports,
    )


def _address(fields: Fields, node: TableNode, addresses: list[str], eids: list[str]) -> None:
    kind = fields.name(node, "addr_type") or ""
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


_LISTS: dict[str, tuple[Form, ...]] = {
    "server_list": ("1.0", "1.2"),
    "rank_list": ("2.0",),
    "group_list": ("group-list", "board-id"),
}
_TOPOLOGY = ("peer_list", "edge_list")
_VERSIONS = '"1.0", "1.2" or "2.0"'


def form_of(fields: Fields, root: TableNode) -> Form | None:
    version = _version(fields, root)
    if any(key in root for key in _TOPOLOGY) and "rank_list" not in root:
        fields.complain(root, None, *said("topology"))
        return None
    if version == "1.1":
        fields.complain(root, "version", *said("version 1.1", versions=_VERSIONS))
        return None
    present = [key for key in _LISTS if key in root]
    if not present:
        fields.complain(root, None, "has no list of servers or ranks", "server_list or rank_list", "neither")
        return None
    wanted = next((key for key in present if version in _LISTS[key]), present[0])
    return _agreed_form(fields, root, _LISTS[wanted], version)


def read_status(fields: Fields, root: TableNode, form: Form) -> str:
    status = fields.name(root, "status", needed=form != "2.0")
    if status is not None and status != "completed":
        waiting = "; HCCL waits half an hour for it to become completed" if status == "initializing" else ""
        fields.complain(root, "status", f"status is not completed{waiting}", '"completed"')
    return status or ""


def check_words(fields: Fields, root: TableNode, form: Form) -> None:
    for key, (word, message) in LAB_WORDS.items():
        if root.members.get(key, word) != word:
            severity = Severity.FAIL if form == "board-id" else Severity.WARN
            fields.complain(root, key, message, f'"{word}"', severity=severity)


def _agreed_form(fields: Fields, root: TableNode, forms: tuple[Form, ...], version: str | None) -> Form:
    if "group_list" in root and "group-list" in forms:
        if version is not None:
            fields.complain(root, "version", *said("version of groups"))
        return "board-id" if any(key in root for key in LAB_KEYS) else "group-list"
    for form in forms:
        if form == version:
            return form
    guessed: Form = "1.2" if forms[-1] == "1.2" and "super_pod_list" in root else forms[0]
    if "version" not in root:
        fields.complain(root, None, "version is missing", f'"version": "{guessed}"', 'no "version"')
    elif version is not None:
        expected = " or ".join(f'"{form}"' for form in forms)
        unknown = "is not the one for such lists" if version in ("1.0", "1.2", "2.0") else "is not known"
        fields.complain(root, "version", f"version {shown(version)} {unknown}", expected)
    return guessed


def _version(fields: Fields, root: TableNode) -> str | None:
    value = root.members.get("version")
    if isinstance(value, float):
        fields.complain(root, "version", "version has no quotes, and HCCL wants a text", _VERSIONS)
        return str(value)
    return fields.name(root, "version", needed=False) if "version" in root else None
