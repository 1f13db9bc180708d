"""The tools of emulated NPUs, as tests run them on a host."""

from tests.lab.npus import NpuHost

Answer = tuple[int, str, str]
"""Exit code, stdout and stderr."""


def tool(host: NpuHost, arguments: str, user: str = "root") -> Answer:
    """`hccn_tool ARGUMENTS`."""
    done = host.host.ask(f"hccn_tool {arguments}", user=user)
    return done.returncode, done.stdout, done.stderr


def smi(host: NpuHost, arguments: str, user: str = "trainee") -> Answer:
    """`npu-smi ARGUMENTS`."""
    done = host.host.ask(f"npu-smi {arguments}", user=user)
    return done.returncode, done.stdout, done.stderr
