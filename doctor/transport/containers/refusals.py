"""The ways in which container engines and kubectl refuse to enter, in their own words.

The texts of docker, podman and kubectl, as printed and as quoted by public reports: tests/samples/entry.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Refusal:
    """One way in which an engine refuses: its meaning, and what to do. `{}` is what the pattern caught."""

    pattern: str
    summary: str
    remedy: str
    look: str = ""
    """What to type after the name of the tool, on the machine where the engine runs."""


_CONTAINER_IS = r"[Cc]ontainer (?:that|which|(?P<it>[\w.-]+)) is "
"""The engines say "container NAME is not running" and "container that is not running"."""

REFUSALS = (
    Refusal(
        r"[Nn]o such container:? ?(?P<it>[\w.-]+)?|no container with name or ID \"?(?P<it2>[\w.-]+)",
        "there is no container {}",
        "Start it, or correct its name.",
        "ps -a",
    ),
    Refusal(
        _CONTAINER_IS + r"paused",
        "the container {} is paused",
        "Resume it.",
        "unpause {}",
    ),
    Refusal(
        _CONTAINER_IS + r"restarting",
        "the container {} keeps restarting",
        "Its log says why it ends.",
        "logs --tail 50 {}",
    ),
    Refusal(
        _CONTAINER_IS + r"not running|container state improper|on running containers"
        r"|cannot exec (?:in |into )?a (?:stopped|container that)",
        "the container {} exists but does not run",
        "Start it; its log says why it ended.",
        "ps -a",
    ),
    Refusal(
        r"permission denied while trying to connect to the docker|docker\.sock: connect: permission denied"
        r"|permission denied while trying to connect to the Docker daemon",
        "this login has no right to use the engine",
        "Put the login into the engine's group, or enter by sudo: --enter 'sudo -n docker exec -i NAME'.",
    ),
    Refusal(
        r"Cannot connect to the Docker daemon|[Cc]annot connect to Podman|docker daemon running",
        "the engine does not run",
        "Start the engine: systemctl status docker says why it does not run.",
    ),
    Refusal(
        r"the input device is not a TTY|cannot enable tty mode|Unable to use a TTY",
        "it asks for a terminal",
        "Remove -t: only -i is needed.",
    ),
    Refusal(
        r"exec: \\?\"?(?P<it>sh|/bin/sh)\\?\"?: (?:executable file not found|stat|permission)"
        r"|executable file [`']?(?P<it2>sh)['`]? not found|stat /bin/sh: no such file",
        "the container has no shell",
        "An image without sh cannot be examined from inside: examine the host, or use an image with a shell.",
    ),
    Refusal(
        r"pods \"(?P<it>[\w.-]+)\" not found",
        "there is no pod {} in that namespace",
        "Correct its name, or give the namespace: kubectl exec -n NAMESPACE -i POD --",
        "get pods -A -o wide",
    ),
    Refusal(
        r"namespaces? \"(?P<it>[\w.-]+)\" not found",
        "there is no namespace {}",
        "Correct its name.",
        "get namespaces",
    ),
    Refusal(
        r"in a completed pod; current phase is (?P<it>\w+)",
        "the pod has ended ({})",
        "Start the job again; a container that ends at once can be held with `sleep infinity`.",
        "get pods -o wide",
    ),
    Refusal(
        r"container not found \(\"(?P<it>[\w.-]+)\"\)|container (?P<it2>[\w.-]+) is not valid for pod"
        r"|container (?P<it3>[\w.-]+) not found in pod",
        "the pod has no running container {}",
        "See whether it waits, crashed or has another name.",
        "get pods -o wide",
    ),
    Refusal(
        r"pod (?P<it>[\w.-]+) does not have a host assigned|pod does not exist",
        "the pod is not on a node",
        "See what it waits for.",
        "get events --sort-by=.lastTimestamp",
    ),
    Refusal(
        r"cannot (?:create|get) resource \"pods/exec\"",
        "this account has no right to start anything in pods",
        'Ask for a role with the verb "create" on "pods/exec".',
        "auth can-i create pods/exec",
    ),
    Refusal(
        r"You must be logged in to the server|\(Unauthorized\)|has asked for the client to provide cred",
        "the cluster does not know this account",
        "Log in to the cluster again.",
        "config current-context",
    ),
    Refusal(
        r"The connection to the server (?P<it>\S+) was refused|Unable to connect to the server",
        "the cluster's API server cannot be reached",
        "See which cluster is meant (KUBECONFIG, current context), and whether it is up.",
        "config current-context",
    ),
    Refusal(
        r"context \"?(?P<it>[\w.@:/-]+?)\"? does not exist"
        r"|context was not found for specified context: (?P<it2>\S+)",
        "there is no context {}",
        "Correct it.",
        "config get-contexts",
    ),
    Refusal(
        r"sudo: .{0,40}(?:password|terminal) is required|is not in the sudoers file",
        "sudo asks for a password",
        "Allow it without a password (NOPASSWD), or put the login into the engine's group.",
    ),
    Refusal(
        r"unable to upgrade connection|error dialing backend",
        "the API server does not reach the node of the pod",
        "See whether the node is ready, and whether the API server may speak to its kubelet.",
        "get nodes -o wide",
    ),
)


def refusal_in(text: str) -> tuple[Refusal | None, str]:
    """The first refusal that fits, and the name that it mentions."""
    for refusal in REFUSALS:
        match = re.search(refusal.pattern, text)
        if match:
            return refusal, next((it for it in match.groupdict().values() if it), "").strip(".")
    return None, ""
