"""A launch script is read as a real shell reads it."""

import shutil
import subprocess

import pytest

from doctor.job.launch.shell import read_script
from doctor.job.launch.shell_flow import ShellCommand
from tests.support.cases import cases


def lines(text: str) -> list[ShellCommand]:
    return list(read_script(text).lines)


@cases
def test_words_are_those_that_bash_produces(text: str) -> None:
    """The script runs here, with a torchrun that only prints its words."""
    if not shutil.which("bash"):
        pytest.skip("needs bash")
    fake = "exec 5>&1; torchrun() { printf '%s\\0' \"$@\" >&5; printf '\\1\\0' >&5; }\n"
    clean = text.replace("\r", "")
    ran = subprocess.run(["bash", "-c", f"{fake}{clean}\n"], capture_output=True, timeout=10)
    calls = ran.stdout.decode().split("\1\0")[:-1]
    expected = [tuple(call.split("\0")[:-1]) for call in calls]
    assert [line.words[1:] for line in lines(text)] == expected, ran.stderr
