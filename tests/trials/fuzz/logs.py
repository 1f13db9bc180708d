"""Logs as `doctor explain` gets them, alone, joined, and in archives; and additional symptoms."""

import bz2
import gzip
import io
import json
import lzma
import re
import tarfile
import tempfile
import zipfile
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from random import Random

from doctor.logs.explanation import Explanation
from doctor.logs.inputs import given
from doctor.logs.judge import JobFacts
from doctor.logs.judge.jobs import conclude_all
from doctor.logs.loss.collect import LossCollector
from doctor.logs.loss.judge import judge_curves
from doctor.logs.read import read
from doctor.logs.report import page_of
from doctor.logs.symptoms.load import load_symptoms
from doctor.logs.symptoms.match import Matcher
from doctor.report.html.page import as_html
from doctor.report.markdown.page import as_markdown
from doctor.report.terminal.cards import print_page
from tests.support.envelopes import as_json
from tests.support.fault_logs import matcher
from tests.support.paths import ROOT
from tests.trials.fuzz.mutate import spoilt
from tests.trials.fuzz.target import printed, refuse_unsafe

LOGS = ROOT / "tests" / "samples" / "logs"
NOW = 1_795_167_475.0


@cache
def logs() -> Sequence[bytes]:
    kinds = {".log", ".txt", ".out", ".err", ""}
    files = (path for path in sorted(LOGS.rglob("*")) if path.is_file() and path.suffix in kinds)
    return [path.read_bytes()[:60_000] for path in files]


def spoilt_log(dice: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Several logs may follow each other, as in the output of a launcher."""
    for _ in range(dice.choice((0, 0, 1, 3))):
        data += dice.choice(others)
    return spoilt(dice, data, others)


def read_log(case: bytes) -> None:
    explain([io.BytesIO(case)])


def explain(given_files: Sequence[Path | io.BytesIO]) -> None:
    found = read(given_files, matcher(), loss=LossCollector, now=NOW)
    conclusion = conclude_all(found, JobFacts(), lambda job: judge_curves(job.curves, matcher().symptoms))
    explained = Explanation(conclusion, found)
    page = page_of(explained)
    refuse_unsafe(printed(partial(print_page, page)))
    refuse_unsafe(as_json(explained).decode())
    json.loads(as_json(explained))
    refuse_unsafe(as_markdown(page).decode())
    refuse_unsafe(as_html(page).decode())


# Archives.


@cache
def archives() -> Sequence[bytes]:
    some = [data for data in logs() if len(data) < 20_000][:12]
    whole = b"".join(some)
    packed = [gzip.compress(whole), bz2.compress(whole), lzma.compress(whole), gzip.compress(whole) * 2]
    for mode in ("w:", "w:gz", "w:xz"):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode=mode) as tar:
            for number, data in enumerate(some):
                member = tarfile.TarInfo(f"job/rank{number}.log")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
            link = tarfile.TarInfo("job/../../etc/passwd")
            link.type, link.linkname = tarfile.SYMTYPE, "/etc/shadow"
            tar.addfile(link)
        packed.append(out.getvalue())
    for form in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", form) as box:
            for number, data in enumerate(some):
                box.writestr(f"job/rank{number}.log", data)
            box.writestr("job/inner.tar.gz", packed[5])
        packed.append(out.getvalue())
    return packed


def read_archive(case: bytes) -> None:
    """Through stdin, and as a file, in which the archive's table can be read."""
    explain([io.BytesIO(case)])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "logs.zip" if case[:2] == b"PK" else "logs.tar")
        path.write_bytes(case)
        given([str(path)])
        explain([path])


# Symptoms of other distributions.


def symptoms() -> Sequence[bytes]:
    """The bundled symptoms, under other names."""
    files = sorted((ROOT / "playbooks" / "symptoms").glob("*.yaml"))
    return [re.sub(rb"(?m)^(?=[a-z])", b"my-", path.read_bytes()) for path in files]


def read_symptoms(case: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "mine.yaml").write_bytes(case)
        found = load_symptoms([Path(folder)])
    Matcher(found.symptoms)
