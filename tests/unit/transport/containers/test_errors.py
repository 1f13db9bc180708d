"""What `--enter` accepts, and the error when a command did not enter, with messages of the real tools."""

from __future__ import annotations

import contextlib
import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doctor.errors import InputErrors, UsageError
from doctor.model import Host, UnreachedHost, UnreachedKind
from doctor.probe import through
from doctor.targets.inventoryfile import read_inventory
from doctor.text.nodeset import is_host
from doctor.transport import Script
from doctor.transport.containers import check_entry, enter_all, entered, not_entered, tool_of
from tests.support.captures import SAMPLES, sample

SILENT = UnreachedHost("node1", UnreachedKind.NO_SHELL, "the login works, but no POSIX shell ran there", "")


@pytest.mark.parametrize(
    ("entry", "tool"),
    [
        ("docker exec -i train", "docker"),
        ("docker exec -iu root train", "docker"),
        ("docker exec -i -uroot -e MODE=t train", "docker"),
        ("docker exec --interactive --tty=false train", "docker"),
        ("docker exec -i train chroot /host", "docker"),
        ("docker --context rack exec -i train", "docker"),
        ("sudo -n docker exec -i train", "docker"),
        ("/usr/bin/podman exec -i train", "podman"),
        ("docker run -i --rm image", "docker"),
        ("docker compose exec -T train", "docker"),
        ("kubectl exec -i train-0 --", "kubectl"),
        ("kubectl -n team exec train-0 -c trainer -i --", "kubectl"),
        ("env KUBECONFIG=/root/k kubectl exec -i deploy/train --", "kubectl"),
        ("nsenter -m -t 5", "nsenter"),
    ],
)
def test_an_entry_that_can_work(entry: str, tool: str) -> None:
    assert check_entry(entry) == entry
    assert tool_of(entry) == tool


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("", "not a command"),
        ("-i docker", "not a command"),
        ("docker exec -i 'train", "quote"),
        ("docker exec -i tr\x1bain", "control characters"),
        ("docker exec -it train", "terminal"),
        ("docker exec -ti train", "terminal"),
        ("docker exec -i --tty train", "terminal"),
        ("kubectl exec -i -t train-0 --", "terminal"),
        ("docker compose exec train", "terminal"),
        ("docker exec train", "-i"),
        ("kubectl exec train-0 --", "-i"),
        ("docker exec -di train", "-d"),
        ("docker exec -i", "names no container"),
        ("kubectl exec -i --", "names no pod"),
        ("kubectl exec -i train-0", "kubectl exec -i train-0 --"),
        ("docker exec -i train bash", "shell"),
        ("kubectl exec -i train-0 -- /bin/sh", "shell"),
    ],
)
def test_an_entry_that_cannot(entry: str, says: str) -> None:
    with pytest.raises(UsageError) as error:
        check_entry(entry)
    assert says in f"{error.value.message} {error.value.hint}"
    with pytest.raises(UsageError, match=r"^--enter: "):
        enter_all((Host("node1", "node1"),), entry)


def test_an_inventory_has_the_same_rules(tmp_path: Path) -> None:
    path = tmp_path / "inventory.yaml"
    path.write_text("hosts:\n  node1: {enter: docker exec -it train}\n  node2: {enter: kubectl exec -i p}\n")
    with pytest.raises(InputErrors) as error:
        read_inventory(path)
    assert [(each.line, "terminal" in each.message) for each in error.value.mistakes] == [
        (2, True),
        (3, False),
    ]


@pytest.mark.slow
@given(st.text(max_size=60))
def test_any_text_is_a_command_or_a_mistake(text: str) -> None:
    with contextlib.suppress(UsageError):
        assert check_entry(text) == text
        assert text.isprintable()


def test_each_host_has_an_entry_of_its_own() -> None:
    hosts = enter_all((Host("a-0", "a-0"), Host("a-1", "a-1")), "kubectl exec -i {host} --")
    assert {host.enter_from for host in hosts} == {"controller"}
    assert [entered(host) for host in hosts] == ["kubectl exec -i a-0 --", "kubectl exec -i a-1 --"]
    script = through(Script("exec sh -s", b"", b""), hosts[1])
    assert shlex.split(script.command) == ["exec", "kubectl", "exec", "-i", "a-1", "--", "sh", "-s"]


def test_a_name_is_harmless_in_a_command() -> None:
    """Names of hosts are checked; even an unchecked one would stay one word."""
    wild = "x; reboot"
    assert not is_host(wild)
    assert shlex.split(entered(Host(wild, wild, enter="docker exec -i {host}")))[-1] == wild


def test_two_hosts_cannot_share_one_pod() -> None:
    hosts = (Host("a-0", "a-0"), Host("a-1", "a-1"))
    with pytest.raises(UsageError, match="the same container") as error:
        enter_all(hosts, "kubectl exec -i a-0 --")
    assert "{host}" in error.value.hint
    here = {host.enter_from for host in enter_all(hosts, "docker exec -i train")}
    assert here == {"host"}, "each host has a container of that name"


SENTENCES = {
    "bash_no_docker": "docker is not installed there",
    "docker_denied": "this login has no right to use the engine",
    "docker_denied_newer": "this login has no right to use the engine",
    "docker_no_container": "there is no container train",
    "docker_no_container_older": "there is no container train",
    "docker_no_daemon": "the engine does not run",
    "docker_no_shell": "the container has no shell",
    "docker_no_shell_older": "the container has no shell",
    "docker_not_running": "but does not run",
    "docker_not_running_newer": "but does not run",
    "docker_paused": "the container train is paused",
    "docker_stopped": "but does not run",
    "docker_tty": "it asks for a terminal",
    "kubectl_completed": "the pod has ended (Succeeded)",
    "kubectl_container_down": "the pod has no running container trainer",
    "kubectl_container_unknown": "the pod has no running container foo",
    "kubectl_forbidden": "this account has no right to start anything in pods",
    "kubectl_kubelet": "the API server does not reach the node of the pod",
    "kubectl_no_context": "there is no context nosuch",
    "kubectl_no_namespace": "there is no namespace team",
    "kubectl_no_pod": "there is no pod train-0 in that namespace",
    "kubectl_no_server": "the cluster's API server cannot be reached",
    "kubectl_no_shell": "the container has no shell",
    "kubectl_pending": "the pod is not on a node",
    "kubectl_unauthorized": "the cluster does not know this account",
    "podman_no_container": "there is no container train",
    "podman_no_container_older": "there is no container train",
    "podman_not_running": "but does not run",
    "podman_not_running_older": "did not enter: the container exists but does not run",
    "shell_no_docker": "docker is not installed there",
    "sudo_password": "sudo asks for a password",
}


def test_every_sample_has_its_sentence() -> None:
    assert {path.stem for path in (SAMPLES / "entry").glob("*.txt")} == SENTENCES.keys()


@pytest.mark.parametrize("name", SENTENCES)
def test_messages_of_an_engine_become_sentences(name: str) -> None:
    pod = name.startswith("kubectl")
    host = Host(
        "node1",
        "node1",
        enter="kubectl exec -i train-0 --" if pod else "docker exec -i train",
        enter_from="controller" if pod else "host",
    )
    why = not_entered(SILENT, host, sample(f"entry/{name}.txt"))
    assert why.kind is UnreachedKind.ENTRY
    assert why.summary == f"{host.enter!r} did not enter: " + why.summary.partition(": ")[2]
    assert SENTENCES[name] in why.summary
    assert why.remedy
    assert all(command.startswith("kubectl " if pod else "ssh node1 ") for command in why.commands)
    assert any("true" in command for command in why.commands)


def test_an_unknown_message_is_quoted_short_and_clean() -> None:
    host = Host("node1", "node1", enter="chamber --token hunter2 in")
    why = not_entered(SILENT, host, "a note\n\x1b[31mno entry " + "x" * 9000)
    assert "no entry" in why.summary
    assert why.summary.isprintable()
    assert len(why.summary) < 250
    assert "hunter2" not in f"{why}"
    assert "it said nothing" in not_entered(SILENT, host, "").summary


def test_commands_of_an_error_show_no_secret() -> None:
    host = Host("p", "p", enter="kubectl --token=hunter2 exec -i {host} --", enter_from="controller")
    why = not_entered(SILENT, host, sample("entry/kubectl_no_pod.txt"))
    assert len(why.commands) == 2
    assert "hunter2" not in f"{why}"


def test_a_hosts_own_entry_runs_where_the_inventory_says() -> None:
    (host,) = enter_all((Host("p", "p", enter="x {host}", enter_from="controller"),), "my-enter {host}")
    assert (host.enter, host.enter_from) == ("my-enter {host}", "controller")
