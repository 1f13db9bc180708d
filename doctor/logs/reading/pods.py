"""Finds the pod, the node and the container that an event in the output of `kubectl describe` is about."""

import re
from collections.abc import Iterable, Mapping
from itertools import takewhile

from doctor.text.hostprogram import table

FAMILY = "kubernetes"
FAR = 120
"""The most lines above an event that are searched for the heading of its pod."""
_INSIDE, _OUTSIDE, _OBJECT, _EVENT, _PLACED, _NAME, _FIELD, _ASKED, _CONTAINER = (
    re.compile(pattern) for _, pattern in table(__file__, "pods.txt")
)


def pod_of(text: str, above: Iterable[str]) -> Mapping[str, str]:
    """What the headings above the line name. `above` has the nearest line first."""
    object = _OBJECT.search(text)
    found = {"which_pod": object["pod"]} if object else {}
    inside = _INSIDE.match(text) is not None
    if not (inside or _OUTSIDE.match(text)):
        above = list(above)
        placed = [*filter(None, map(_PLACED.search, above))]
        if own := next((each for each in placed if each["pod"] in text), None):
            node = {} if "Back-off restarting" in text else {"guilty_host": own["node"]}
            return {"which_pod": own["pod"], **node}
        of_one = _EVENT.match(text) is not None
        heads = (_PLACED.search(line) or _NAME.match(line) for line in above)
        name = next((each["pod"] for each in heads if each), "")
        near = [*takewhile(_EVENT.match, above)]  # events of one pod
        of_node = "kubelet" in text and not re.search("BackOff|(?i:not ?found|secret|configmap)", text)
        if of_node and (own := next(filter(None, map(_PLACED.search, near)), None)):
            return {"which_pod": own["pod"], "guilty_host": own["node"]}
        return {"which_pod": name} if of_one and name else found
    for line in above:
        container = _CONTAINER.match(line) if inside and "which_container" not in found else None
        if container:
            found["which_container"] = container["name"]
        if asked := _ASKED.search(line):
            kind = (
                "which_pod" if asked["kind"].startswith("po") and "g" not in asked["kind"] else "which_group"
            )
            return {
                **found,
                kind: asked["name"] if kind == "which_pod" else f"{asked['kind']} {asked['name']}",
            }
        if field := _FIELD.match(line):
            if field["key"] == "Node":
                found.setdefault("guilty_host", field["value"])
                continue
            return {**found, "which_pod": field["value"]}
    return {name: value for name, value in found.items() if name == "which_container"}
