"""Who is measured: command lines that ask the same hosts with the same keys, each in its own usual way."""

import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.meter import Sample
from tests.lab import Lab

ASK = "cat /proc/loadavg"
FORKS = "64"


@dataclass(frozen=True, slots=True)
class Contender:
    """`answer` marks a line of each host (or one line for all), so that a program that fails fast does not
    count as fast.
    """

    name: str
    argv: Sequence[str]
    answer: str
    answers_each: bool = True
    env: Mapping[str, str] = field(default_factory=dict)
    ok: tuple[int, ...] = (0,)

    def trouble(self, sample: Sample, hosts: int) -> str:
        """Why this run must not be compared with others; empty if it may be."""
        answers = sum(self.answer in line for line in sample.output.splitlines())
        if sample.rc in self.ok and answers >= (hosts if self.answers_each else 1):
            return ""
        return f"ended with {sample.rc}, {answers} answers: {sample.output.strip()[-300:]}"


def peers(lab: Lab, nodeset: str) -> list[Contender]:
    """The peers that are installed. PYTHONPATH is empty, so that they find nothing of ours."""
    config = str(lab.ssh_config)
    options = f"-F {shlex.quote(config)}"
    plain = {"PYTHONPATH": ""}
    inventory = lab.directory / "ansible_inventory"
    inventory.write_text("".join(f"{name}\n" for name in lab.names))
    return [
        Contender(
            f"clush {ASK}",
            ["clush", "-f", FORKS, "-o", options, "-w", nodeset, *ASK.split()],
            answer=": ",
            env=plain,
        ),
        Contender(
            f"pdsh -R ssh {ASK}",
            ["pdsh", "-R", "ssh", "-f", FORKS, "-w", nodeset, *ASK.split()],
            answer=": ",
            env={**plain, "PDSH_SSH_ARGS_APPEND": options},
        ),
        Contender(
            "ansible all -m setup",
            ["ansible", "all", "-i", str(inventory), "-f", FORKS, "-m", "setup"],
            answer="| SUCCESS",
            env={
                **plain,
                "ANSIBLE_SSH_ARGS": f"{options} -C -o ControlMaster=auto -o ControlPersist=60s",
                "ANSIBLE_SSH_CONTROL_PATH_DIR": str(lab.directory / "cp"),
            },
        ),
    ]


def examinations(lab: Lab, nodeset: str) -> list[Contender]:
    return [
        Contender(
            f"doctor check{''.join(f' {word}' for word in words)}",
            lab.doctor_argv("check", nodeset, *words),
            answer=f"{len(lab.names)} hosts · ",
            answers_each=False,
            ok=(0, 1),
        )
        for words in (("--exam", "host"), ())
    ]


def installed(contender: Contender) -> bool:
    return shutil.which(contender.argv[0]) is not None


def version(program: str) -> str:
    """The first line of its own version output, or a note that it is missing."""
    flag = {"ssh": "-V", "pdsh": "-V"}.get(program, "--version")
    try:
        done = subprocess.run([program, flag], capture_output=True, text=True, timeout=20)
    except FileNotFoundError:
        return f"{program} is not installed"
    return ((done.stdout or done.stderr).strip().splitlines() or [program])[0]


def forget_masters(lab: Lab) -> None:
    """End the connections that ansible keeps, so that each of its runs starts cold like all others."""
    for socket in (lab.directory / "cp").glob("*"):
        lab.run(["ssh", "-o", f"ControlPath={socket}", "-O", "exit", "host"])
