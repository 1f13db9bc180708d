"""Forms 1.0 and 1.2: `server_list`, each server with its devices, and in 1.2 `super_pod_list`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from doctor.job.ranktable.fields import Fields, Node
from doctor.job.ranktable.model import Count, Entry, Port, RankTable, Server, SuperPod
from doctor.model import Severity

LONGEST_ID = 64
PORTS = ("device_port", "device_vnic_port", "backup_device_port", "host_port")
_HOST = ("host_ip", "server_ip")


def read_servers(fields: Fields, root: Node, frame: RankTable) -> RankTable:
    nodes = fields.objects(root, "server_list")
    pods = tuple(_super_pods(fields, root)) if "super_pod_list" in root else ()
    pod_of = {server: pod.id for pod in reversed(pods) for server in pod.servers}
    if pods and frame.form == "1.0":
        message = "super_pod_list counts only in a table of version 1.2"
        fields.complain(root, "super_pod_list", message, '"version": "1.2"', severity=Severity.WARN)
    servers = (_server(fields, node) for node in nodes)
    return replace(
        frame,
        servers=tuple(replace(server, super_pod=pod_of.get(server.id)) for server in servers),
        counts=tuple(_server_count(fields, root, frame, len(nodes))),
        super_pods=pods,
    )


def read_device(fields: Fields, node: Node, server: str, rank: int | None, whole: Node) -> Entry:
    """What the forms with one object a device have in common. `node` is it, `whole` tells of its rank."""
    device = fields.number(node, "device_id")
    node = node.of(server, rank, device)
    addresses = fields.addresses(node, "device_ip")
    ports = [(name, fields.number(node, name)) for name in PORTS if name in node]
    backup = fields.addresses(node, "backup_device_ip")
    return Entry(
        rank,
        server,
        device,
        addresses[0] if addresses else None,
        _super_device(fields, node),
        None,
        fields.places.spot(fields.at(whole)),
        addresses=addresses,
        backup=backup[0] if backup else None,
        ports=tuple(Port(name, number) for name, number in ports if number is not None),
    )


def read_host(fields: Fields, node: Node) -> str | None:
    """The address of the host itself, where the file gives a valid one."""
    given = [address for key in _HOST for address in fields.addresses(node, key)]
    return given[0] if given else None


def _server(fields: Fields, node: Node) -> Server:
    id = fields.name(node, "server_id", longest=LONGEST_ID) or ""
    node = node.of(id)
    entries = tuple(
        read_device(fields, device, id, fields.number(device, "rank_id"), device)
        for device in fields.objects(node, "device")
    )
    return Server(id, read_host(fields, node), entries, fields.places.spot(fields.at(node)))


def _super_device(fields: Fields, node: Node) -> int | None:
    if node.members.get("super_device_id") == "":
        message = "super_device_id is empty: HCCL refuses it with 'super_device_id[] is invalid'"
        fields.complain(node, "super_device_id", message, "the SDID of npu-smi info -t spod-info")
        return None
    return fields.number(node, "super_device_id", needed=False)


def _server_count(fields: Fields, root: Node, frame: RankTable, servers: int) -> Iterator[Count]:
    if "server_count" not in root and frame.form == "1.0":
        message = "server_count is missing; newer HCCL counts the servers itself"
        expected = f'"server_count": "{servers}"'
        fields.complain(root, None, message, expected, 'no "server_count"', Severity.WARN)
    yield from fields.count(root, "server_count", servers, "servers in server_list")


def _super_pods(fields: Fields, root: Node) -> Iterator[SuperPod]:
    for node in fields.objects(root, "super_pod_list"):
        id = fields.name(node, "super_pod_id") or ""
        members = fields.objects(node, "server_list")
        names = [fields.name(member, "server_id") for member in members]
        servers = tuple(name for name in names if name)
        yield SuperPod(id, servers, fields.places.spot(fields.at(node)))
