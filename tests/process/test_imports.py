"""Heavy libraries are imported only where they are needed."""

import subprocess
import sys

import pytest

from tests.support.cases import cases


@cases
def test_heavy_modules_are_imported_only_when_needed(code: str, absent: set[str]) -> None:
    program = f"import sys\n{code}\nsys.stderr.write(' '.join(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not {name.partition(".")[0] for name in ran.stderr.split()} & absent


@cases
def test_what_explain_is_asked_decides_what_it_imports(words: str, absent: set[str]) -> None:
    assert not _loaded(f"['explain', {words}]") & absent


TRAINING = {"doctor.exam.smoke_rounds", "doctor.smoke.agents", "doctor.smoke.judge.crash", "doctor.smoke.run"}
BETWEEN_HOSTS = {"doctor.mesh.run", "doctor.agents.bootstrap"}
OF_A_LAUNCH = {"doctor.job.launch.files", "doctor.job.launch.shell_flow"}
CHECKS = {"doctor.firewall", "_doctor_checks_0_connect", "importlib.metadata"}


@pytest.mark.parametrize(
    ("words", "absent"),
    [
        (["facts", "--local"], TRAINING | BETWEEN_HOSTS | OF_A_LAUNCH | CHECKS | {"psutil", "zipfile"}),
        (["check", "--local"], TRAINING | BETWEEN_HOSTS | OF_A_LAUNCH | {"psutil"}),
        (["preflight", "--help"], {"doctor.api", "doctor.exam.examination", "doctor.text.yamlfile"}),
    ],
)
def test_one_host_loads_nothing_of_what_it_does_not_use(words: list[str], absent: set[str]) -> None:
    loaded = _loaded(repr(words))
    assert "doctor.cli" in loaded
    assert not loaded & absent


def _loaded(arguments: str) -> set[str]:
    """The modules that are loaded after a command."""
    asked = f"from doctor.cli import run\nrun({arguments})"
    program = f"import sys\n{asked}\nsys.stderr.write('\\n'.join(['', *sys.modules]))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(ran.stderr.split())
