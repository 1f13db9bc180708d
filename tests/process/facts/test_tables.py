"""Which files a host is asked for, by its own shell."""

import os
import subprocess
from pathlib import Path

import pytest

from doctor.api import Ask, Run
from doctor.facts.tables import TABLE_FILES

CONFIG = "~/.cache/huggingface/accelerate/default_config.yaml"


@pytest.mark.parametrize("name", ["", "HF_HOME", "XDG_CACHE_HOME"])
def test_a_cache_that_the_login_has_elsewhere(name: str, tmp_path: Path) -> None:
    places = (CONFIG, "~/acc.yaml")
    for each in places:
        path = tmp_path / each[2:]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("num_machines: 2\n")
    assert isinstance(TABLE_FILES.command, Run)
    asked = TABLE_FILES.command.text(Ask("a", tables=places))
    env = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], **({name: "/data/x"} if name else {})}
    done = subprocess.run(["sh", "-c", asked], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.count("num_machines") == (1 if name else 2)
    assert f"{tmp_path}/acc.yaml" in done.stdout
