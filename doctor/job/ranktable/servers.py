"""The forms that list devices by server: `server_list` (1.0, 1.2), and `group_list` without a version.

With `deploy_mode` (MindSpore 0.x, form board-id) each instance of a group has a rank and one device. Without
it (form group-list) HCCL numbers the ranks itself.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

from doctor.job.ranktable import model
from doctor.job.ranktable.fields import Fields, TableNode
from doctor.job.ranktable.flaws import said
from doctor.model import Severity
from doctor.text.grouped import grouped

LAB_WORDS = {
    "deploy_mode": ("lab", "deploy_mode is not lab, the only value that is known"),
    "para_plane_nic_location": (
        "device",
        "para_plane_nic_location is not device, the only value that HCCL accepts",
    ),
}
"""Members of the form board-id that have one value. HCCL does not read them in a table with a version."""
PORTS = ("device_port", "device_vnic_port", "backup_device_port", "host_port")
_HOST = ("host_ip", "server_ip")


def read_servers(fields: Fields, root: TableNode, frame: model.RankTable) -> model.RankTable:
    nodes = fields.objects(root, "server_list")
    pods = tuple(_super_pods(fields, root)) if "super_pod_list" in root else ()
    pod_of = {server: pod.id for pod in reversed(pods) for server in pod.servers}
    if pods and frame.form == "1.0":
        fields.complain(root, "super_pod_list", *said("superpods before 1.2"), severity=Severity.WARN)
    servers = (_server(fields, node) for node in nodes)
    return replace(
        frame,
        servers=tuple(replace(server, super_pod=pod_of.get(server.id)) for server in servers),
        counts=tuple(_server_count(fields, root, frame, len(nodes))),
        super_pods=pods,
    )


def read_device(
    fields: Fields, node: TableNode, server: str, rank: int | None, whole: TableNode
) -> model.RankEntry:
    """The entry of one device, for all forms. `node` is its object; `whole` is the object with its rank."""
    device = fields.number(node, "device_id")
    node = node.of(server, rank, device)
    addresses = fields.addresses(node, "device_ip")
    ports = fields.ports(node, PORTS)
    backup = fields.addresses(node, "backup_device_ip")
    return model.RankEntry(
        rank,
        server,
        device,
        fields.places.spot(fields.at(whole)),
        addresses,
        _super_device(fields, node),
        backup=backup[0] if backup else None,
        ports=ports,
    )


def read_host(fields: Fields, node: TableNode) -> str | None:
    """The address of the host itself, if the file gives a valid one."""
    given = [address for key in _HOST for address in fields.addresses(node, key)]
    return given[0] if given else None


def _server(fields: Fields, node: TableNode) -> model.Server:
    id = fields.server(node)
    node = node.of(id)
    entries = tuple(
        read_device(fields, device, id, fields.number(device, "rank_id"), device)
        for device in fields.objects(node, "device")
    )
    return model.Server(id, read_host(fields, node), entries, fields.places.spot(fields.at(node)))


def _super_device(fields: Fields, node: TableNode) -> int | None:
    if node.members.get("super_device_id") == "":
        fields.complain(node, "super_device_id", *said("empty super_device_id"))
        return None
    return fields.number(node, "super_device_id", needed=False)


def _server_count(
    fields: Fields, root: TableNode, frame: model.RankTable, servers: int
) -> Iterator[model.StatedCount]:
    if "server_count" not in root and frame.form == "1.0":
        fields.complain(root, None, *said("no server_count", servers=servers), severity=Severity.WARN)
    yield from fields.count(root, "server_count", servers, "servers in server_list")


def _super_pods(fields: Fields, root: TableNode) -> Iterator[model.SuperPod]:
    for node in fields.objects(root, "super_pod_list"):
        id = fields.name(node, "super_pod_id") or ""
        names = [fields.name(member, "server_id") for member in fields.objects(node, "server_list")]
        yield model.SuperPod(id, tuple(name for name in names if name), fields.places.spot(fields.at(node)))


CHIP = "910"
LAB_KEYS = ("deploy_mode", "board_id", "chip_info", "para_plane_nic_location", "para_plane_nic_num")


def read_groups(fields: Fields, root: TableNode, frame: model.RankTable) -> model.RankTable:
    lab = frame.form == "board-id"
    counts: list[model.StatedCount] = []
    instances: list[tuple[model.Server, TableNode]] = []
    groups = fields.objects(root, "group_list")
    for group in groups:
        here = [(_instance(fields, node, lab), node) for node in fields.objects(group, "instance_list")]
        counts += _group_counts(fields, group, [server for server, _ in here], lab)
        instances += here
    counts += fields.count(root, "group_count", len(groups), "groups in group_list")
    if not lab:
        _pods(fields, [node for _, node in instances])
        servers = _number_ranks(_merge_instances(server for server, _ in instances))
        return replace(frame, servers=servers, counts=tuple(counts))
    nics = _nics(fields, root)
    counts += fields.count(root, "para_plane_nic_num", len(nics), "names in para_plane_nic_name")
    return replace(
        frame,
        servers=_merge_instances(server for server, _ in instances),
        board_id=_lab(fields, root),
        chip=root.members.get("chip_info") == CHIP,
        counts=tuple(counts),
        nics=nics,
    )


def _instance(fields: Fields, node: TableNode, lab: bool) -> model.Server:
    """One element of instance_list, treated as a separate server."""
    id = fields.server(node)
    rank = fields.number(node, "rank_id") if lab else None
    node = node.of(id, rank)
    devices = fields.objects(node, "devices")
    if lab and len(devices) > 1:
        fields.complain(node, "devices", *said("devices of an instance", number=len(devices)))
    if lab:
        for device in devices:
            if "device_ip" not in device:
                fields.complain(device, None, "device_ip is missing", '"device_ip": ""', 'no "device_ip"')
    entries = tuple(read_device(fields, each, id, rank, node if lab else each) for each in devices)
    return model.Server(id, read_host(fields, node), entries, fields.places.spot(fields.at(node)))


def _group_counts(
    fields: Fields, group: TableNode, instances: list[model.Server], lab: bool
) -> Iterator[model.StatedCount]:
    devices = sum(len(instance.entries) for instance in instances)
    servers = len({instance.id for instance in instances})
    yield from fields.count(group, "instance_count", len(instances), "instances in instance_list")
    yield from fields.count(group, "device_num" if lab else "device_count", devices, "devices in the group")
    yield from fields.count(group, "server_num", servers, "servers in the group")


def _pods(fields: Fields, instances: list[TableNode]) -> None:
    seen: set[str] = set()
    for node in instances:
        name = fields.name(node, "pod_name")
        if name in seen:
            fields.complain(node, "pod_name", "pod_name is given twice", "a name of its own for each pod")
        seen.add(name or "")


def _lab(fields: Fields, root: TableNode) -> str | None:
    if "deploy_mode" not in root:
        fields.complain(root, None, *said("no deploy_mode"), severity=Severity.WARN)
    chip = fields.name(root, "chip_info", needed=False)
    if chip is not None and chip != CHIP:
        fields.complain(root, "chip_info", *said("other chip", chip=CHIP), severity=Severity.WARN)
    board = fields.name(root, "board_id", needed=False)
    if board is not None and model.board_architecture(board) is None:
        boards = " or ".join(f'"{known}" ({name})' for name, known in model.BOARDS.items())
        fields.complain(root, "board_id", "board_id is not a known board", boards, severity=Severity.WARN)
    return board


def _nics(fields: Fields, root: TableNode) -> tuple[str, ...]:
    names = root.members.get("para_plane_nic_name", [])
    if isinstance(names, list) and all(isinstance(name, str) for name in names):
        return tuple(names)
    fields.complain(root, "para_plane_nic_name", "para_plane_nic_name is not a list of names", "a list")
    return ()


def _merge_instances(instances: Iterator[model.Server]) -> tuple[model.Server, ...]:
    """One server for all instances with the same id. Those without an id stay separate."""
    servers = grouped(((one.id, None if one.id else one.spot), one) for one in instances)
    return tuple(_merge(parts) for parts in servers.values())


def _merge(parts: list[model.Server]) -> model.Server:
    entries = tuple(entry for part in parts for entry in part.entries)
    host = next((part.host_ip for part in parts if part.host_ip), None)
    return replace(parts[0], entries=entries, host_ip=host)


def _number_ranks(servers: tuple[model.Server, ...]) -> tuple[model.Server, ...]:
    """The servers with the ranks that HCCL assigns; unchanged if a server or a device is unknown."""
    if any(entry.device is None or not entry.server for server in servers for entry in server.entries):
        return servers
    ranks = count()
    numbered: dict[str, tuple[model.RankEntry, ...]] = {}
    for server in sorted(servers, key=lambda server: server.id):
        entries = sorted(server.entries, key=lambda entry: entry.device or 0)
        numbered[server.id] = tuple(replace(entry, rank=next(ranks)) for entry in entries)
    return tuple(replace(server, entries=numbered[server.id]) for server in servers)
