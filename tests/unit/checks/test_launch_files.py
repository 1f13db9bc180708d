"""Files that a launch names by their paths: which are looked for, and whom a missing one accuses."""

from pathlib import Path

import pytest

from doctor.api import Capture, UnreadableOutput
from doctor.facts.needed import MISSING_FILES
from doctor.model import Severity
from tests.support.cases import cases
from tests.support.launches import a_plan, judged, read

TORCHRUN = "torchrun --nnodes=2 --node_rank=$1 --nproc_per_node=8 --master_addr=node1"


@cases
def test_which_paths_are_looked_for(text: str, needs: list[str], tmp_path: Path) -> None:
    assert list(read(tmp_path, text.replace("TORCHRUN", TORCHRUN)).needs) == needs


def test_a_host_without_the_image_is_named_alone(tmp_path: Path) -> None:
    launch = read(tmp_path, f"singularity exec /images/train.sif {TORCHRUN} train.py\n")
    missing = {"node1": (), "node2": ("/images/train.sif",)}
    (found,), _ = judged("launch-files-missing", [launch], a_plan(hosts=2), {"missing-files": missing})
    assert (found.hosts, found.severity, found.subject) == (("node2",), None, "/images/train.sif")
    nowhere = dict.fromkeys(missing, ("/images/train.sif",))
    (found,), _ = judged("launch-files-missing", [launch], a_plan(hosts=2), {"missing-files": nowhere})
    assert (found.hosts, found.severity) == ((), Severity.WARN)
    everywhere = dict.fromkeys(missing, ())
    assert judged("launch-files-missing", [launch], a_plan(hosts=2), {"missing-files": everywhere})[0] == []


def test_the_look_at_the_files() -> None:
    parsed = {
        text: MISSING_FILES.parse(Capture("missing-files", 0, text))
        for text in ("", "look\nlooked\n", "look\n/a b\nlooked\n")
    }
    assert list(parsed.values()) == [(), (), ("/a b",)], "nothing to look for is nothing missing"
    for cut in ("look\n", "look\n/images/train.sif\n"):
        with pytest.raises(UnreadableOutput):
            MISSING_FILES.parse(Capture("missing-files", 0, cut))
