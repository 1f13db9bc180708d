"""The pods and nodes of a cluster that are meant, as hosts, and the way into them."""

import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from doctor.errors import UsageError
from doctor.exam.request import Request
from doctor.model import Host, UnreachedKind
from doctor.targets.inventory import Targets
from doctor.text.announce import announce
from doctor.text.textfile import shown
from doctor.transport.containers.command import HOST, NSENTER, pod_entry
from doctor.transport.errors import CannotReach
from doctor.transport.pods.cluster import SECONDS, Cluster, Kubectl
from doctor.transport.pods.errors import trouble_of
from doctor.transport.pods.podlist import Pod
from doctor.transport.pods.roster import choose_pods, read_selection
from doctor.transport.pods.transport import PodTransport

OTHERS = (
    *("HOSTS", "--hostfile", "--inventory", "--local", "--job", "--on-nodes"),
    *("--user", "--port", "--identity", "--jump", "--via", "--enter", "--transport", "--allocate"),
)
"""Options that name other hosts, or another way to them."""
ON_NODES = "app=doctor-node"
"""The label of the pods through which nodes are entered: examples/kubernetes/daemonset.yaml."""
INSTALL = "Install examples/kubernetes/daemonset.yaml; it must tolerate the taints of the nodes."


def pods_of(request: Request) -> Targets:
    """Pods in the order of their ranks, or nodes, as hosts. Raises UsageError."""
    who = request.who
    option = "--on-nodes" if who.pods is None else "--pods"
    if clash := next((name for name in OTHERS if name in request.typed and name != option), None):
        raise UsageError(
            f"{clash} cannot be combined with {option}: pods are found and entered through their cluster.",
            "--exclude leaves pods out; -n, --container and --context say where they are.",
        )
    at = who.namespace, who.context
    cluster: Cluster | Kubectl
    try:
        cluster = Cluster(*at, min(request.way.connect_timeout or SECONDS[1], request.way.timeout))
    except ImportError:
        cluster = Kubectl(*at)
    notes: list[str] = []
    if who.pods is None:
        placed = _by_node(cluster, text := who.nodes or "")
    else:
        chosen = read_selection(text := who.pods)
        pods, notes = choose_pods(cluster.pods(chosen.labels), chosen, cluster.kubectl)
        placed = {pod.name: pod for pod in pods}
    hosts, doors, troubles = [], {}, {}
    look = f"{cluster.kubectl} get pods -o wide -l {ON_NODES}"
    for name, pod in placed.items():
        if pod is None:
            hosts.append(Host(name, name, enter_from="controller"))
            said = f"No pod with the label {ON_NODES} runs on it."
            troubles[name] = CannotReach(UnreachedKind.ENTRY, said, INSTALL, (look,))
            continue
        own = pod.container(who.container)
        doors[name], entry = (pod.name, own), pod_entry(cluster.namespace, who.context, own)
        if who.pods is None:
            entry, node, image = f"{entry.replace(HOST, pod.name)} {NSENTER}", None, ""
        else:
            node, image = pod.spec.node or None, pod.image(own)
        hosts.append(Host(name, name, enter=entry, enter_from="controller", node=node, image=image))
        if why := trouble_of(pod, own, cluster.kubectl):
            troubles[name] = why
    found = Targets(tuple(hosts), f"{option} {text}")
    if isinstance(cluster, Cluster):
        return replace(found, way=partial(PodTransport, cluster, doors, troubles, notes))
    for note in notes:
        announce(note)
    return found


def _by_node(cluster: Cluster | Kubectl, text: str) -> Mapping[str, Pod | None]:
    """The pod through which each of the nodes is entered; None if there is none. Raises UsageError."""
    chosen = read_selection(text, "node", "--on-nodes")
    if isinstance(cluster, Kubectl):
        hint = f"Type: {sys.executable} -m pip install kubernetes"
        raise UsageError("--on-nodes needs the package kubernetes.", hint)
    names = chosen.names or cluster.nodes(chosen.labels)
    if not names:
        hint = f"{cluster.kubectl} get nodes --show-labels shows all."
        raise UsageError(f"--on-nodes {shown(text)}: no node fits.", hint)
    there = {pod.spec.node: pod for pod in cluster.pods(ON_NODES) if not pod.leaves}
    return {name: there.get(name) for name in names}
