"""Live devices -> the text of a rank table. The same devices always give the same text."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Literal

from doctor.errors import UsageError
from doctor.job.ranktable.model import BOARDS

MakeForm = Literal["1.0", "legacy", "1.2"]


@dataclass(frozen=True, slots=True)
class LiveDevice:
    """`device` is the physical id; `super_device` and `super_pod` are its ids in a superpod."""

    device: int
    address: str | None
    super_device: int | None = None
    super_pod: str | None = None


@dataclass(frozen=True, slots=True)
class LiveServer:
    """`address` is the host's own address."""

    id: str
    address: str
    devices: tuple[LiveDevice, ...]


def make_table(servers: Sequence[LiveServer], form: MakeForm, architecture: str = "aarch64") -> str:
    """The text of a table. Servers keep the given order (in 1.2, those of a superpod together).

    `legacy` is the oldest form, of MindSpore 0.x, which identifies a server by its address. Raises UsageError
    if no table can be made from the servers.
    """
    if not servers or not all(server.devices for server in servers):
        raise UsageError("a rank table needs servers with at least one device each")
    if form == "1.2":
        servers = _by_pod(servers)
    document = _legacy(servers, architecture) if form == "legacy" else _current(servers, form)
    return json.dumps(document, indent=4) + "\n"


def _current(servers: Sequence[LiveServer], form: str) -> dict[str, Any]:
    listed: list[dict[str, Any]] = []
    pods: dict[str, list[dict[str, str]]] = {}
    ranks = count()
    for server in servers:
        entry: dict[str, Any] = {"server_id": server.id}
        if form == "1.2":
            entry["host_ip"] = server.address
            pods.setdefault(server.devices[0].super_pod or "", []).append({"server_id": server.id})
        entry["device"] = [_device(next(ranks), device, form) for device in _ascending(server)]
        if form == "1.0":
            entry["host_nic_ip"] = "reserve"  # MindSpore's own tool writes it; newer HCCL ignores it
        listed.append(entry)
    document = {"version": form, "server_count": str(len(servers)), "server_list": listed}
    if form == "1.2":
        document["super_pod_list"] = [{"super_pod_id": id, "server_list": ids} for id, ids in pods.items()]
    return {**document, "status": "completed"}


def _device(rank: int, device: LiveDevice, form: str) -> dict[str, str]:
    written = {"device_id": str(device.device)}
    if form == "1.2":
        written["super_device_id"] = str(device.super_device)
    if device.address:
        written["device_ip"] = device.address
    return {**written, "rank_id": str(rank)}


def _ascending(server: LiveServer) -> list[LiveDevice]:
    return sorted(server.devices, key=lambda device: device.device)


def _legacy(servers: Sequence[LiveServer], architecture: str) -> dict[str, Any]:
    board = BOARDS.get(architecture)
    if board is None:
        raise UsageError(f"no board is known for {architecture}", f"one of {', '.join(BOARDS)}")
    ranks = [(server, device) for server in servers for device in _ascending(server)]
    nics = sorted({device.device for _, device in ranks})
    group = {
        "device_num": str(len(ranks)),
        "server_num": str(len(servers)),
        "group_name": "",
        "instance_count": str(len(ranks)),
        "instance_list": [
            {
                "devices": [{"device_id": str(device.device), "device_ip": device.address or ""}],
                "rank_id": str(rank),
                "server_id": server.address,
            }
            for rank, (server, device) in enumerate(ranks)
        ],
    }
    return {
        "board_id": board,
        "chip_info": "910",
        "deploy_mode": "lab",
        "group_count": "1",
        "group_list": [group],
        "para_plane_nic_location": "device",
        "para_plane_nic_name": [f"eth{nic}" for nic in nics],
        "para_plane_nic_num": str(len(nics)),
        "status": "completed",
    }


def _by_pod(servers: Sequence[LiveServer]) -> list[LiveServer]:
    pods: dict[str, list[LiveServer]] = {}
    for server in servers:
        pod = server.devices[0].super_pod
        if pod is None or any(one.super_device is None or one.super_pod != pod for one in server.devices):
            raise UsageError(
                f"{server.id} does not give the superpod of each device, and the id of the device in it",
                "npu-smi info -t spod-info shows it on an Atlas A3; other products have tables of form 1.0",
            )
        pods.setdefault(pod, []).append(server)
    return [server for members in pods.values() for server in members]
