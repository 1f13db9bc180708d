"""The pods that --pods means, as hosts, and the way into them."""

from dataclasses import replace
from functools import partial

from doctor.errors import UsageError
from doctor.exam.request import Request
from doctor.model import Host
from doctor.targets.inventory import Targets
from doctor.text.announce import announce
from doctor.transport.containers.command import pod_entry
from doctor.transport.pods.cluster import SECONDS, Cluster, Kubectl
from doctor.transport.pods.errors import trouble_of
from doctor.transport.pods.roster import choose_pods, read_selection
from doctor.transport.pods.transport import PodTransport

OTHERS = (
    *("HOSTS", "--hostfile", "--inventory", "--local", "--job"),
    *("--user", "--port", "--identity", "--jump", "--via", "--enter", "--transport", "--allocate"),
)
"""Options that name other hosts, or another way to them."""


def pods_of(request: Request) -> Targets:
    """The pods as hosts, in the order of their ranks. Raises UsageError."""
    who = request.who
    if clash := next((name for name in OTHERS if name in request.typed), None):
        raise UsageError(
            f"{clash} cannot be combined with --pods: pods are found and entered through their cluster.",
            "--exclude leaves pods out; -n, --container and --context say where they are.",
        )
    chosen = read_selection(who.pods or "")
    at = who.namespace, who.context
    cluster: Cluster | Kubectl
    try:
        cluster = Cluster(*at, min(request.way.connect_timeout or SECONDS[1], request.way.timeout))
    except ImportError:
        cluster = Kubectl(*at)
    pods, notes = choose_pods(cluster.pods(chosen.labels), chosen, cluster.kubectl)
    containers = {pod.name: pod.container(who.container) for pod in pods}
    hosts = []
    for pod in pods:
        own, node = containers[pod.name], pod.spec.node or None
        entry, image = pod_entry(cluster.namespace, who.context, own), pod.image(own)
        hosts.append(Host(pod.name, pod.name, enter=entry, enter_from="controller", node=node, image=image))
    found = Targets(tuple(hosts), f"--pods {chosen.text}")
    if isinstance(cluster, Kubectl):
        for note in notes:
            announce(note)
        return found
    troubles = {pod.name: trouble_of(pod, containers[pod.name], cluster.kubectl) for pod in pods}
    stopped = {name: why for name, why in troubles.items() if why is not None}
    return replace(found, way=partial(PodTransport, cluster, containers, stopped, notes))
