"""Containers of a job that were made from different images."""

import re
from collections.abc import Iterable, Iterator, Mapping

from doctor.api import (
    Capture,
    Confidence,
    Damage,
    Evidence,
    Fact,
    Problem,
    Run,
    Scope,
    Severity,
    Skip,
    check,
    fold,
    maybe,
)
from doctor.rules.machines import votes_of

SHOWN = 12


def _image(capture: Capture) -> str:
    """The number of an image's content, or after `@` the digest of its manifest in a registry."""
    form = r"(?:docker://|\S+(@))?(?:sha256:)?([0-9a-f]{12,64})"
    found = re.fullmatch(form, capture.stdout.strip())
    return f"{found[1] or ''}{found[2][:SHOWN]}" if found else ""


IMAGE = Fact("image", Run('printf "%s\\n" "$CLUSTER_DOCTOR_IMAGE"'), _image)
"""The image of the container that is entered, as its engine or cluster tells it; empty if it tells none."""


@check(
    "digest-differs",
    maybe(IMAGE),
    damage=Damage.RISK,
    scope=Scope.CLUSTER,
    severity=Severity.WARN,
    several_hosts=True,
)
def digest_differs(images: Mapping[str, str]) -> Iterator[Problem]:
    """The containers of the job were made from different images.

    Why it matters: one host kept an older image under the same name (`latest`, `train`): its ranks run other
    code and other libraries than the rest, and nothing in the launch shows it.

    How it is known: the engine is asked on each host for the image of the container that `--enter` names (not
    crictl); the cluster, for the image of each pod. The number is that of the image's content, or of its
    manifest in the registry; its name does not count. Files of apptainer are not compared.

    What to do: pull the image on the hosts that differ, and start their containers anew. In a cluster, name
    the image by its digest, or have it pulled each time (`imagePullPolicy: Always`).
    """
    known = {host: image for host, image in images.items() if image}
    if not known:
        raise Skip("no container engine tells an image")
    if len({image[0] == "@" for image in known.values()}) > 1:
        raise Skip("some images are told by their content, others by their registry: they cannot be compared")
    votes, tie = votes_of(known)
    if tie:
        sides = "; ".join(f"{image} on {fold(hosts)}" for image, hosts in votes)
        summary, same = "the containers were made from different images", "the same image on all hosts"
        yield _made(summary, same, sides, known, Confidence.SUSPECT)
        return
    for image, odd in votes[1:]:
        usual = f"{votes[0][0]}, as on {len(votes[0][1])} hosts"
        yield _made("its container was made from another image", usual, image, odd, Confidence.STRONG)


def _made(summary: str, expected: str, actual: str, hosts: Iterable[str], sure: Confidence) -> Problem:
    if "@" in actual:
        source = "kubectl get pod -o jsonpath={.status.containerStatuses[*].imageID}"
        again = "# Name the image by its digest, or set imagePullPolicy: Always, and start the pods anew."
        commands: tuple[str, ...] = ("kubectl get pods -o wide", again)
    else:
        source = "docker inspect -f {{.Image}}"
        again = "# Pull the image of the others, and start the container anew."
        commands = ("docker images --digests", again)
    return Problem(
        summary,
        expected=expected.replace("@", ""),
        actual=actual.replace("@", ""),
        hosts=tuple(hosts),
        confidence=sure,
        evidence=(Evidence(source, actual),),
        commands=commands,
    )
