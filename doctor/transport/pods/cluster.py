"""The API server of a cluster: its pods, and commands started in them. No credential leaves this module."""

import copy
import logging
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from logging.handlers import BufferingHandler
from pathlib import Path
from typing import Any, TypeVar

from doctor.errors import UsageError, suggest
from doctor.text.textfile import shown
from doctor.transport.errors import quoted
from doctor.transport.pods.errors import LONGEST, message_of, not_entered, refused
from doctor.transport.pods.podlist import Pod, read_nodes, read_pods

T = TypeVar("T")
PAGE = 500
"""Pods in one answer."""
SECONDS = (10.0, 30.0)
"""To connect to the API server, and for an answer of it."""
IN_POD = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
AWAY, SILENT = "unreachable", "silent"
STREAMS = {
    **dict.fromkeys(("stdin", "stdout", "stderr", "binary"), True),
    **dict.fromkeys(("tty", "_preload_content"), False),
}


class Cluster:
    """Raises UsageError if nothing says which cluster is meant, and ImportError without the package."""

    def __init__(self, namespace: str | None, context: str | None, seconds: float) -> None:
        """`seconds`: how long the entry into a pod may be silent."""
        from kubernetes import __version__, client, config
        from kubernetes.stream import ws_client

        if int(__version__.partition(".")[0]) < 30:  # those decode what programs print
            hint = f"Type: {shlex.quote(sys.executable)} -m pip install --upgrade kubernetes"
            raise UsageError(f"Kubernetes: the package kubernetes {__version__} is too old.", hint)
        ws_client.WebSocket = partial(_impatient, seconds)
        config.kube_config._create_temp_file_with_content = _in_memory  # nothing else keeps keys off the disk
        settings, heard = client.Configuration(), BufferingHandler(100)
        heard.setLevel(logging.ERROR)
        logging.getLogger().addHandler(heard)  # a plugin may say what must not be printed
        try:
            files = map(os.path.expanduser, config.KUBE_CONFIG_DEFAULT_LOCATION.split(os.pathsep))
            if context or not os.environ.get("KUBERNETES_SERVICE_HOST") or any(map(os.path.exists, files)):
                own = _namespace_of(config, context)
                config.load_kube_config(context=context, client_configuration=settings, persist_config=False)
            else:
                config.load_incluster_config(client_configuration=settings)
                own = Path(IN_POD).read_text()
        except UsageError:
            raise
        except Exception as error:  # its words may quote the file, with its credentials
            why = f"the kubeconfig names none, or cannot be used ({type(error).__name__})"
            hint = "Name the file in KUBECONFIG, and choose by --context; kubectl config view shows both."
            raise UsageError(f"Kubernetes: which cluster is not known: {why}.", hint) from None
        if heard.buffer:
            why = quoted(heard.buffer[-1].getMessage().removeprefix("exec: "), LONGEST).rstrip(".")
            why = "it says why above" if "NoneType" in why else why  # it printed to the terminal itself
            said = f"Kubernetes: the credential plugin of the kubeconfig failed: {why}."
            raise UsageError(said, "Log in to the cluster again.")
        settings.retries = 0
        self.namespace = namespace or own or "default"
        self.kubectl = _kubectl(context, self.namespace)
        self._api = client.CoreV1Api(client.ApiClient(settings))

    def pods(self, labels: str) -> list[Pod]:
        """All pods that have these labels. Raises UsageError."""
        return self._listed(partial(self._api.list_namespaced_pod, self.namespace), labels, read_pods)

    def nodes(self, labels: str) -> list[str]:
        """The names of all nodes that have these labels. Raises UsageError."""
        return [node.name for node in self._listed(self._api.list_node, labels, read_nodes)]

    def _listed(
        self, ask: Callable[..., Any], labels: str, read: Callable[[bytes], tuple[tuple[T, ...], str]]
    ) -> list[T]:
        from kubernetes.client import ApiException

        found: list[T] = []
        more: dict[str, str] = {}
        ask = partial(
            ask, _request_timeout=SECONDS, _preload_content=False, label_selector=labels, limit=PAGE
        )
        try:
            while True:
                page, begins = read(ask(**more).data)
                found += page
                if not begins:
                    return found
                more["_continue"] = begins
        except ApiException as error:
            raise refused(message_of(error.body or error.reason, error.status), self.kubectl) from None
        except UsageError:
            raise
        except Exception as error:  # of the libraries below the package
            raise refused(AWAY, self.kubectl, _innermost(error)) from None

    def start(self, pod: str, container: str, command: str) -> Any:
        """A WebSocket to a command in the pod, once it has begun. Raises CannotReach."""
        from kubernetes.client import ApiException, CoreV1Api
        from kubernetes.stream import stream

        # `stream` changes the client of the call: each call has its own.
        api = CoreV1Api(copy.copy(self._api.api_client))
        try:
            ask = partial(stream, api.connect_get_namespaced_pod_exec, pod, self.namespace, **STREAMS)
            return ask(container=container, command=["sh", "-c", command]).sock
        except ApiException as error:
            cause = error.__context__ or error
            if status := getattr(cause, "status_code", None):
                said = message_of(getattr(cause, "resp_body", None) or "", status)
                raise not_entered(said, self.kubectl) from None
            if type(cause).__name__ == "WebSocketTimeoutException" or isinstance(cause, TimeoutError):
                raise not_entered(SILENT, self.kubectl) from None
            raise not_entered(AWAY, self.kubectl, _innermost(cause)) from None


class Kubectl:
    """The same by kubectl, where the package is missing; it enters pods by itself."""

    def __init__(self, namespace: str | None, context: str | None) -> None:
        self.namespace, self.kubectl = namespace, _kubectl(context, namespace)

    def pods(self, labels: str) -> Sequence[Pod]:
        ask = [*shlex.split(self.kubectl), "get", "pods", "-o", "json", *(("-l", labels) if labels else ())]
        try:
            asked = subprocess.run(ask, stdin=subprocess.DEVNULL, capture_output=True, timeout=sum(SECONDS))
        except FileNotFoundError:
            hint = f"Type: {sys.executable} -m pip install kubernetes"
            raise UsageError("--pods needs the package kubernetes, or kubectl.", hint) from None
        except (OSError, subprocess.TimeoutExpired) as error:
            raise refused(AWAY, self.kubectl, type(error).__name__) from None
        if asked.returncode:
            raise refused(message_of(asked.stderr), self.kubectl)
        return read_pods(asked.stdout)[0]


def _impatient(seconds: float, **options: Any) -> Any:
    """A WebSocket that does not wait for ever."""
    from websocket import WebSocket

    web = WebSocket(**options)
    web.settimeout(seconds)
    return web


def _in_memory(content: str | bytes, *_: object, **__: object) -> str:
    """The path of a file with a certificate or key that stood in the kubeconfig; it ends with the process."""
    with open(os.memfd_create("kubeconfig"), "wb", closefd=False) as file:
        file.write(content.encode() if isinstance(content, str) else content)
        return f"/proc/self/fd/{file.fileno()}"


def _kubectl(context: str | None, namespace: str | None) -> str:
    """How kubectl is called for this cluster and namespace."""
    options = (("--context", context), ("-n", namespace))
    return shlex.join(["kubectl", *(word for name, value in options if value for word in (name, value))])


def _namespace_of(config: Any, context: str | None) -> str:
    """The namespace that the kubeconfig names for the context. Raises UsageError if there is no such one."""
    contexts, current = config.list_kube_config_contexts()
    known = {each["name"]: each for each in contexts}
    if context is not None and context not in known:
        hint = f"{suggest(context, known)} kubectl config get-contexts lists them.".strip()
        raise UsageError(f"--context: there is no context {shown(context)}.", hint)
    return str((known[context] if context is not None else current)["context"].get("namespace", ""))


def _innermost(error: BaseException) -> str:
    """The reason that is in the middle of nested errors of a connection."""
    while (inner := getattr(error, "reason", None) or error.__context__) and isinstance(inner, BaseException):
        error = inner
    return str(getattr(error, "strerror", None) or error)
