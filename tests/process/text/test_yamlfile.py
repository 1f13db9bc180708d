"""YAML that names Python objects constructs nothing, with either loader."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from doctor.text import yamlfile
from tests.support.paths import ROOT


@pytest.fixture(params=["c", "python"], autouse=True)
def loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both parsers, since a PyYAML without libyaml has only the slow one."""
    monkeypatch.setattr(yamlfile, "_LOADER", yaml.CSafeLoader if request.param == "c" else yaml.SafeLoader)
    return str(request.param)


def test_nothing_is_constructed(tmp_path: Path) -> None:
    """In a separate process: neither os.system nor an import that the file names."""
    proof = tmp_path / "proof"
    text = f"a: !!python/object/apply:pathlib.Path.touch [!!python/object/apply:pathlib.Path [{proof}]]"
    code = "import sys\nfrom doctor.text.yamlfile import parse_yaml\nparse_yaml(sys.argv[1], 'f')"
    done = subprocess.run([sys.executable, "-c", code, text], capture_output=True, check=False, cwd=ROOT)
    assert done.returncode == 1
    assert b"is a tag" in done.stderr
    assert not proof.exists()
