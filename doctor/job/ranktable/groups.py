"""The forms without a version: `group_list`, whose instances (pods, or one a rank) name their server.

With `deploy_mode` (MindSpore 0.x, form board-id) each instance has a rank and one device. Without it (form
group-list) HCCL numbers the ranks itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from doctor.job.ranktable.fields import Fields, Node
from doctor.job.ranktable.model import Count, Entry, RankTable, Server, Spot
from doctor.job.ranktable.servers import LONGEST_ID, read_device, read_host
from doctor.model import Severity

LAB_KEYS = ("deploy_mode", "board_id", "chip_info", "para_plane_nic_location", "para_plane_nic_num")


def read_groups(fields: Fields, root: Node, frame: RankTable) -> RankTable:
    lab = frame.form == "board-id"
    counts: list[Count] = []
    instances: list[tuple[Server, Node]] = []
    groups = fields.objects(root, "group_list")
    for group in groups:
        nodes = fields.objects(group, "instance_list")
        here = [(_instance(fields, node, lab), node) for node in nodes]
        counts += _group_counts(fields, group, [server for server, _ in here], lab)
        instances += here
    counts += fields.count(root, "group_count", len(groups), "groups in group_list")
    if not lab:
        _pods(fields, [node for _, node in instances])
        servers = _numbered(_merged(server for server, _ in instances))
        return replace(frame, servers=servers, counts=tuple(counts))
    nics = _nics(fields, root)
    counts += fields.count(root, "para_plane_nic_num", len(nics), "names in para_plane_nic_name")
    return replace(
        frame,
        servers=_merged(server for server, _ in instances),
        board_id=_lab(fields, root),
        counts=tuple(counts),
        nics=nics,
    )


def _instance(fields: Fields, node: Node, lab: bool) -> Server:
    """One element of instance_list, as if it were a server of its own."""
    id = fields.name(node, "server_id", longest=LONGEST_ID) or ""
    rank = fields.number(node, "rank_id") if lab else None
    node = node.of(id, rank)
    devices = fields.objects(node, "devices")
    if lab and len(devices) > 1:
        message = "an instance has one rank, and more than one device"
        fields.complain(node, "devices", message, "one device", f"{len(devices)} devices")
    if lab:
        for device in devices:
            if "device_ip" not in device:
                fields.complain(device, None, "device_ip is missing", '"device_ip": ""', 'no "device_ip"')
    wholes = [node if lab else device for device in devices]
    pairs = zip(devices, wholes, strict=True)
    entries = tuple(read_device(fields, device, id, rank, whole) for device, whole in pairs)
    return Server(id, read_host(fields, node), entries, fields.places.spot(fields.at(node)))


def _group_counts(fields: Fields, group: Node, instances: list[Server], lab: bool) -> Iterator[Count]:
    devices = sum(len(instance.entries) for instance in instances)
    servers = len({instance.id for instance in instances})
    yield from fields.count(group, "instance_count", len(instances), "instances in instance_list")
    yield from fields.count(group, "device_num" if lab else "device_count", devices, "devices in the group")
    yield from fields.count(group, "server_num", servers, "servers in the group")


def _pods(fields: Fields, instances: list[Node]) -> None:
    seen: set[str] = set()
    for node in instances:
        name = fields.name(node, "pod_name")
        if name in seen:
            fields.complain(node, "pod_name", "pod_name is given twice", "a name of its own for each pod")
        seen.add(name or "")


def _lab(fields: Fields, root: Node) -> str | None:
    if "deploy_mode" not in root:
        message = "deploy_mode is missing: HCCL then looks for pods, not for ranks"
        expected, actual = '"deploy_mode": "lab"', 'no "deploy_mode"'
        fields.complain(root, None, message, expected, actual, Severity.WARN)
    if root.members.get("para_plane_nic_location", "device") != "device":
        message = "para_plane_nic_location is not device, and HCCL knows no other"
        fields.complain(root, "para_plane_nic_location", message, '"device"')
    return fields.name(root, "board_id", needed=False)


def _nics(fields: Fields, root: Node) -> tuple[str, ...]:
    names = root.members.get("para_plane_nic_name", [])
    if isinstance(names, list) and all(isinstance(name, str) for name in names):
        return tuple(names)
    fields.complain(root, "para_plane_nic_name", "para_plane_nic_name is not a list of names", "a list")
    return ()


def _merged(instances: Iterator[Server]) -> tuple[Server, ...]:
    """One server for all instances that name it. Those that name none stay apart."""
    servers: dict[tuple[str, Spot | None], list[Server]] = {}
    for one in instances:
        servers.setdefault((one.id, None if one.id else one.spot), []).append(one)
    return tuple(_merge(parts) for parts in servers.values())


def _merge(parts: list[Server]) -> Server:
    entries = tuple(entry for part in parts for entry in part.entries)
    host = next((part.host_ip for part in parts if part.host_ip), None)
    return replace(parts[0], entries=entries, host_ip=host)


def _numbered(servers: tuple[Server, ...]) -> tuple[Server, ...]:
    """With the ranks that HCCL gives; none where a server or a device is not known."""
    if any(entry.device is None or not entry.server for server in servers for entry in server.entries):
        return servers
    rank = 0
    numbered: dict[str, tuple[Entry, ...]] = {}
    for server in sorted(servers, key=lambda server: server.id):
        entries = sorted(server.entries, key=lambda entry: entry.device or 0)
        numbered[server.id] = tuple(replace(entry, rank=rank + n) for n, entry in enumerate(entries))
        rank += len(entries)
    return tuple(replace(server, entries=numbered[server.id]) for server in servers)
