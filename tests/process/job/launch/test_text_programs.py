"""What programs that only change text print: the real ones print the same."""

import subprocess
from pathlib import Path

from doctor.job.launch.shell import read_script
from tests.support.cases import cases

HOSTS = "# name slots\nnode1 slots=8\n\nnode2 slots=4\n"


@cases
def test_what_a_command_prints(command: str, folder: str, tmp_path: Path) -> None:
    """`$( … )` in a script is what bash makes of it."""
    (tmp_path / "hosts").write_text(folder or HOSTS)
    done = subprocess.run(
        ["bash", "-c", f'printf %s "{command}"'], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    def read(path: str) -> str | None:
        return Path(path).read_text() if Path(path).is_file() else None

    (line,) = read_script(f'torchrun train.py "{command}"\n', str(tmp_path), read).lines
    assert line.words[-1] == done.stdout
