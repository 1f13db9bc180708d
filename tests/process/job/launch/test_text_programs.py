"""What programs that only change text print: the real ones print the same."""

import random
import subprocess
from pathlib import Path

from doctor.job.launch.shell import read_script
from tests.support.cases import cases, from_cases

HOSTS = "# name slots\nnode1 slots=8\n\nnode2 slots=4\n"
PROGRAMS = from_cases(__file__, "PROGRAMS", list[str])
PARTS = from_cases(__file__, "PARTS", list[str])


def last_word(word: str, folder: Path) -> str:
    """What is read of a word of a script."""

    def read(path: str) -> str | None:
        return Path(path).read_text() if Path(path).is_file() else None

    (line,) = read_script(f'V=gpu-node-12.lan\ntorchrun train.py "{word}"\n', str(folder), read).lines
    return line.words[-1]


def in_bash(word: str, folder: Path) -> str | None:
    """What bash makes of it; None if a program complains."""
    given = f'V=gpu-node-12.lan\nprintf %s "{word}"'
    done = subprocess.run(
        ["bash", "-c", given], cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    return None if done.stderr else done.stdout


@cases
def test_what_a_command_prints(command: str, folder: str, tmp_path: Path) -> None:
    """`$( … )` in a script is what bash makes of it."""
    (tmp_path / "hosts").write_text(folder or HOSTS)
    assert last_word(command, tmp_path) == in_bash(command, tmp_path)


def test_what_is_known_of_any_pipeline_is_what_it_prints(tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text(HOSTS)
    draw, known = random.Random(7), 0
    for _ in range(1500):
        pipeline = " | ".join(draw.choice(PROGRAMS) for _ in range(draw.randint(1, 3)))
        word = draw.choice([f"$({pipeline})", draw.choice(PARTS).replace("@", draw.choice("*?a.n-0"))])
        found = last_word(word, tmp_path)
        if "$" not in found:
            known += 1
            assert in_bash(word, tmp_path) in (found, None), word
    assert known > 300
