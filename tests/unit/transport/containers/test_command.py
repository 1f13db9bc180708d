"""The command that enters a container, and what it tells the container about its image."""

import pytest

from doctor.model import Host
from doctor.transport.containers.command import entered_with_image


@pytest.mark.parametrize(
    ("enter", "engine", "name"),
    [
        ("docker exec -i train", "docker", "train"),
        ("sudo -n docker exec -i train-{host}", "sudo -n docker", "train-node1"),
        ("/usr/bin/podman exec -i -u 0 train", "/usr/bin/podman", "train"),
        ("docker --context far exec -i train", "docker --context far", "train"),
    ],
)
def test_an_engine_is_asked_for_the_image(enter: str, engine: str, name: str) -> None:
    command = entered_with_image(Host("node1", "node1", enter=enter))
    image = f"`{engine} inspect -f '{{{{.Image}}}}' {name} 2>/dev/null`"
    before, _, after = enter.replace("{host}", "node1").partition(" exec ")
    assert command == f'{before} exec -e "CLUSTER_DOCTOR_IMAGE={image}" {after}'


@pytest.mark.parametrize(
    ("enter", "which", "asks"),
    [
        ("docker compose -p job exec -T train", "", "docker compose -p job images -q train"),
        ("docker-compose exec -T train", "", "docker-compose images -q train"),
        ("kubectl exec -i a-0 --", "*", "kubectl get pod OF a-0"),
        ("kubectl -n ml exec a-0 -i --context far --", "*", "kubectl -n ml get pod OF a-0 --context far"),
        ("oc exec -iq -c main a-0 --", r"?(@.name==\"main\")", "oc get pod OF a-0"),
        ("oc exec -i a-0 --container=main -n ml --", r"?(@.name==\"main\")", "oc get pod OF a-0 -n ml"),
    ],
)
def test_what_asks_for_the_image(enter: str, which: str, asks: str) -> None:
    command = entered_with_image(Host("node1", "node1", enter=enter))
    asked = (
        command.partition("CLUSTER_DOCTOR_IMAGE=`")[2]
        .partition(" 2>/dev/null`")[0]
        .removesuffix(" </dev/null")
    )
    of = f"{{.spec.containers[{which}].image}} {{.status.containerStatuses[{which}].imageID}}"
    assert " ".join(asked.split()) == asks.replace("OF", f"-o jsonpath='{of}'")


def test_an_image_that_the_cluster_told() -> None:
    image = "docker.io/library/train@sha256:12; reboot"
    command = entered_with_image(Host("a-0", "a-0", enter="kubectl exec -i {host} --", image=image))
    assert command == f"kubectl exec -i a-0 -- env CLUSTER_DOCTOR_IMAGE='{image}'"


@pytest.mark.parametrize(
    "enter",
    [
        "docker exec -i 'two words'",
        "docker exec -i $TRAIN",
        "docker exec -i train sh",
        "kubectl exec -i train other --",
        "ssh gateway docker exec -i train",
        "docker exec -i train chroot /mnt",
        "apptainer exec /images/train.sif",
        "crictl exec -i 1f73f2d81bf98",
        "nsenter -t 4711 -m",
        "sh -c 'mount /x; exec \"$@\"' sh",
        "sh -c 'cd /; docker exec -i train'",
    ],
)
def test_what_is_entered_as_it_was_typed(enter: str) -> None:
    assert entered_with_image(Host("node1", "node1", enter=enter)) == enter


@pytest.mark.parametrize(
    ("enter", "contained"),
    [
        (None, False),
        ("docker exec -i train", True),
        ("kubectl exec -i doctor-node-x0 -- nsenter -t 1 -m -u -i -n -p --", False),
        ("sudo -n /usr/bin/nsenter --target=1 --mount --", False),
        ("sudo -n nsenter -t1 -a --", False),
        ("docker exec -i nsenter-t1", True),
        ("docker exec -i nsenter", True),
        ("sudo -n nsenter -t 1234 -n --", True),
    ],
)
def test_a_whole_machine_is_not_a_container(enter: str | None, contained: bool) -> None:
    assert Host("node1", "node1", enter=enter).contained is contained
