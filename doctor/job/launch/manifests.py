"""The commands of a Kubernetes manifest (PyTorchJob, Job, MPIJob and others), as a shell would type them.

The variables that the operator of a PyTorchJob sets for torchrun come before the command; what it sets for
each pod is left unknown.
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from doctor.job.launch.slips import Slip
from doctor.text.yamlfile import parse_yaml, plain

_POD = "$POD"
"""Stands for a value that only the pod has."""
_OF_PODS = (("metadata", "name"), ("spec", "serviceName"), ("metadata", "namespace"))
_BELOW = re.compile(r"(([\w-]+)-\d{1,6})\.([a-z][a-z\d-]*)(?![\w-]|\.svc\b)")
_PORT_NAME = "pytorchjob-port"
PORT = "23456"
"""The port of a PyTorchJob that names none."""


def script_of(text: str, file: str) -> str | None:
    """The commands of its containers; None if it is not a manifest. Raises InputErrors if it is not YAML."""
    manifests = _manifests(text, file)
    if not manifests:
        return None
    jobs = [tree for tree in manifests if _replicas(tree)] or manifests
    return "\n".join(line for tree in jobs for line in _lines(tree))


def pods_elsewhere(text: str, file: str, masters: Iterable[str]) -> Iterator[Slip]:
    """Masters that are pods of a StatefulSet below another service than its own, which no pod resolves."""
    named = [[_table(tree.get(of)).get(key) for of, key in _OF_PODS] for tree in _manifests(text, file)]
    for found in filter(None, map(_BELOW.match, {*masters})):
        known = [place for name, *place in named if name == found[2] and place[0]]
        if known and found[3] not in sum(known, ["default"]) and found[1] not in (name for name, *_ in named):
            yield Slip("service", "", _line(text, found[0]), found[0], like=f"{found[1]}.{known[0][0]}")
    for tree in _manifests(text, file):
        spec, pods = _table(tree.get("spec")), [*_containers(tree)]
        given = [word for pod in pods for of in ("command", "args") for word in _listed(pod.get(of))]
        words = " ".join(map(str, [*given, *(f"{key} {spec[key]}" for key in spec)]))
        workers = _table(_table(spec.get("mpiReplicaSpecs")).get("Worker")).get("replicas")
        each = spec.get("slotsPerWorker", 1)
        slots = workers * each if isinstance(workers, int) and isinstance(each, int) else 0
        devices = max((int(has) for pod in pods if (has := _devices(pod)).isdecimal()), default=0)
        same = {"StatefulSet": "replicas", "Job": "completions"}.get(tree["kind"], "")
        sized = [*_replicas(tree).values()] or [{"replicas": spec.get(same, 0)}]
        fixed = "elasticPolicy" not in spec and all("nnodes" in str(of) for of in _replicas(tree).values())
        free = re.search("oversubscribe|Implementation (?!OpenMPI)", words)
        for kind, option, most in (
            ("limits", r"nproc[_-]?per[_-]?node", devices),
            ("workers", r"\s-np", slots),
            ("pods", r"nnodes", _pods(sized) * fixed),
        ):
            said = re.search(rf"(?i){option}[= ](\d+)(?![\d:])", words)
            if said and most and not free and ((n := int(said[1])) > most or (kind == "pods" and n < most)):
                yield Slip(kind, "", _line(text, said[1]), said[0][-40:], like=str(most))
        said = re.search(r"(?i)nnodes[= ](\d+)(?![\d:])", words) if tree["kind"] == "Job" else None
        if said and isinstance(pods := spec.get("parallelism", 1), int) and 0 < pods < int(said[1]):
            yield Slip("parallel", "", _line(text, "parallelism:"), f"parallelism: {pods}", like=said[1])
        numbered = spec.get("completionMode") == "Indexed" or tree["kind"] != "Job"
        if not numbered and "JOB_COMPLETION_INDEX" in words:
            yield Slip("indexed", "", _line(text, "JOB_COMPLETION_INDEX"), "JOB_COMPLETION_INDEX")


def _manifests(text: str, file: str) -> list[dict[str, Any]]:
    trees = [plain(parse_yaml(part, file).root) for part in _documents(text)]
    return [tree for tree in trees if isinstance(tree, dict) and {"apiVersion", "kind"} <= tree.keys()]


def has_default_port(text: str) -> bool:
    """Whether the operator gives these pods a port that the manifest does not name."""
    return "pytorchReplicaSpecs:" in text and _PORT_NAME not in text and "elasticPolicy:" not in text


def _documents(text: str) -> Iterator[str]:
    """The documents of a file; the empty lines before each make its mistakes name the right line."""
    above = 0
    for part in re.split(r"(?m)^---.*$", text):
        if part.strip():
            yield "\n" * above + part
        above += part.count("\n")


def _lines(tree: Mapping[str, Any]) -> Iterator[str]:
    replicas = _replicas(tree)
    for container in _containers(next(iter(replicas.values()), tree)):
        given = [*_listed(container.get("command")), *_listed(container.get("args"))]
        words = [re.sub(r"\$\((\w{1,200})\)", r"${\1}", str(word)) for word in given]
        known = {**(_by_operator(tree, replicas, container) if replicas else {}), **_variables(container)}
        if words:
            exports = " ".join(f"{name}={value}" for name, value in known.items())
            yield f"({f'export {exports}; ' if exports else ''}{shlex.join(words)})"


def _replicas(tree: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The kinds of pods of a PyTorchJob, its master first."""
    specs = _table(_table(tree.get("spec")).get("pytorchReplicaSpecs"))
    return {name: _table(specs[name]) for name in sorted(specs, key=lambda name: name.lower() != "master")}


def _by_operator(
    tree: Mapping[str, Any], replicas: Mapping[str, Mapping[str, Any]], container: Mapping[str, Any]
) -> dict[str, str]:
    open_ports = map(_table, _listed(container.get("ports")))
    ports = {port.get("name"): port.get("containerPort") for port in open_ports}
    devices = _devices(container)
    each = str(_table(tree.get("spec")).get("nprocPerNode") or "")
    each = each if each.isdecimal() else devices
    port = str(ports.get(_PORT_NAME) or _POD)
    known = {
        "PET_NPROC_PER_NODE": each if each.isdecimal() else _POD,
        "PET_NNODES": str(_pods(replicas.values())),
    }
    if elastic := _table(_table(tree.get("spec")).get("elasticPolicy")):
        backend = shlex.quote(str(elastic.get("rdzvBackend", "c10d")))
        return known | {"PET_NNODES": _POD, "PET_RDZV_BACKEND": backend, "PET_RDZV_ENDPOINT": _POD}
    known |= {"PET_MASTER_PORT": port, "MASTER_PORT": port}
    return known | {"PET_MASTER_ADDR": _POD, "PET_NODE_RANK": _POD, "MASTER_ADDR": _POD, "RANK": _POD}


def _pods(sized: Iterable[Mapping[str, Any]]) -> int:
    return sum(int(n) for each in sized if str(n := each.get("replicas", 1)).isdecimal())


def _devices(container: Mapping[str, Any]) -> str:
    """The devices of a container; "" if it names none."""
    limits = _table(_table(container.get("resources")).get("limits"))
    return next((str(n) for name, n in limits.items() if re.search(r"gpu|npu|ascend", name, re.I)), "")


def _line(text: str, words: str) -> int:
    return text[: text.find(words)].count("\n") + 1


def _variables(container: Mapping[str, Any]) -> dict[str, str]:
    return {
        str(each["name"]): shlex.quote(str(each["value"])) if each.get("value") is not None else _POD
        for each in map(_table, _listed(container.get("env")))
        if re.fullmatch(r"[A-Za-z_]\w{0,199}", str(each.get("name", "")))
    }


def _containers(tree: Any) -> Iterator[Mapping[str, Any]]:
    """All containers, wherever a kind of manifest keeps them."""
    if isinstance(tree, list):
        for each in tree:
            yield from _containers(each)
    elif isinstance(tree, dict):
        for name, each in tree.items():
            if name == "containers":
                yield from map(_table, _listed(each))
            else:
                yield from _containers(each)


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
