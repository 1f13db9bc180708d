"""Scripts and sessions in pods, by the API server, in this process: a WebSocket and a thread each."""

import threading
from collections.abc import Mapping, Sequence
from functools import partial

from doctor.model import Host
from doctor.transport.containers import entered
from doctor.transport.errors import CannotReach
from doctor.transport.pods.cluster import Cluster
from doctor.transport.pods.errors import not_entered
from doctor.transport.pods.program import PodProgram
from doctor.transport.threads import MOST_WAITING, ThreadedTransport, Turn


class PodTransport(ThreadedTransport):
    """`containers`: pod and container of each host; `troubles`: why none is entered; `notes`: warnings."""

    name = "pods"
    descriptors_each = 3
    before = "the pod was being entered"

    def __init__(
        self,
        cluster: Cluster,
        containers: Mapping[str, tuple[str, str]],
        troubles: Mapping[str, CannotReach],
        notes: Sequence[str],
        hosts: Sequence[Host],
        fanout: int = MOST_WAITING,
    ) -> None:
        super().__init__(len(hosts), fanout)
        self._warnings += notes
        self._entries = {host.name: f"exec {entered(host)} ".partition(" -- ")[0] + " -- " for host in hosts}
        self._cluster, self._containers, self._troubles = cluster, containers, troubles
        self._starts = threading.Semaphore(self.descriptors.starts)

    def program(self, host: str, command: str, turn: Turn) -> PodProgram:
        if why := self._troubles.get(host):
            raise why
        entry = self._entries[host]
        inside = f"exec {command.removeprefix(entry)}" if command.startswith(entry) else command
        with self._starts:
            turn.begin()
            web = self._cluster.start(*self._containers[host], inside)
        begun = PodProgram(web, partial(not_entered, kubectl=self._cluster.kubectl))
        self._stops[host].append(begun.stop)
        return begun
