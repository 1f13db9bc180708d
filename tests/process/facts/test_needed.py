"""What a shell says about the paths that a launch names."""

import shlex
import subprocess
from pathlib import Path

from checks.launch_files import _LOOK, NEEDED_FILES
from doctor.api import Capture


def test_what_a_shell_says_about_paths(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("pass\n")
    (tmp_path / "wrap.sh").write_text("exec true\n")
    (tmp_path / "wrap.sh").chmod(0o755)
    (tmp_path / "nothing.py").write_text("")
    (tmp_path / "accelerate.yaml").write_text("a: 1\n")
    (tmp_path / "env.sh").write_text("A=1\r\n", newline="")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "torchrun").write_text("#!/no/such/python -s\nmain()\n")
    (tmp_path / "go.sh").write_text("#! /usr/bin/env bash\n")
    (tmp_path / "go.sh").chmod(0o755)
    for number, name in enumerate(
        ("w/weights.bin", "model/a.safetensors", "whole/a.safetensors", "whole.pt")
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        text = "" if number > 1 else "version https://git-lfs.github.com/spec/v1\noid sha256:4bff\nsize 80\n"
        (tmp_path / name).write_text(text or "PK\0\1")
    names = (
        "w/weights.bin",
        "model",
        "whole",
        "whole.pt",
        "bin/torchrun",
        "go.sh",
        "env.sh",
        "train.py",
        "wrap.sh",
        "nothing.py",
        "",
        "acelerate.yaml",
        "data",
        "gone/away.py",
    )
    paths = [f"{tmp_path}/{name}".rstrip("/") for name in names]
    looks = "\n".join(f"l {shlex.quote(path)}" for path in paths)
    run = subprocess.run(
        ["sh", "-c", _LOOK.replace("@looks@", looks)], capture_output=True, text=True, check=True
    )
    found = NEEDED_FILES.parse(Capture("missing-files", 0, run.stdout))
    assert [found.get(path, "") for path in paths] == [
        *("a pointer of git-lfs", "a folder", "a folder", "not executable"),
        *(
            "a script without its interpreter",
            "",
            "lines with CR LF",
            "not executable",
            "",
            "empty",
            "a folder",
        ),
        *("missing: accelerate.yaml", "missing:", "missing"),
    ]
    sums = {path for path in found if path.startswith("= ")}
    assert sums == {f"= {tmp_path}/train.py"}
