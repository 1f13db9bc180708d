"""Containers and pods, which show less of their host."""

from __future__ import annotations

from tests.lab.container import Container
from tests.trials.node.situation import Group, Kind, Stage

BOXES = Group("In containers")


def _box(name: str, script: str = ":", kind: Kind = "plain", shm: str = "64m", net: str = "host") -> None:
    def act(stage: Stage) -> Container:
        node = {"plain": "node1", "gpus": "node2", "npus": "node3", "amd": "node4"}[kind]
        container = stage.engine.run(node, "train", shm=shm, net=net)
        said = container.ask(f"({script}) >/dev/null && echo done")
        assert said == "done", (name, said)
        return container

    BOXES.add(name, act, kind)


_box("Docker's defaults, network of the host")
_box("a network of its own", net="bridge")
_box("a pod", net="pod")
_box("/dev/shm of 1 MB", shm="1m")
_box("/dev/shm is full", "dd if=/dev/zero of=/dev/shm/full bs=1M count=64 || :")
_box("read-only root, /tmp is a tmpfs", "mount -t tmpfs -o size=64m tmp /tmp; mount -o remount,ro /")
_box("read-only root without any tmpfs", "mount -o remount,ro /; mount -o remount,ro /dev/shm")
_box("/tmp of 4 MB", "mount -t tmpfs -o size=4m tmp /tmp")
_box("/tmp of 16 MB, full", "mount -t tmpfs -o size=16m tmp /tmp; dd if=/dev/zero of=/tmp/full || :")
_box("loopback is down", "ip link set lo down", net="bridge")
_box("without /dev/shm", "umount /dev/shm; rmdir /dev/shm")
_box("without the GPUs of its host *", kind="gpus")
_box("without the NPUs of its host *", kind="npus")
_box("without the AMD GPUs of its host *", kind="amd")
