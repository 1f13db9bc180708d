"""Library output is stored without secrets, and is still understood."""

import msgspec

from doctor.live.evidence import LibraryText, LiveEvidence
from doctor.live.evidence_file import encoded
from doctor.live.libraries.opinions import decoded
from doctor.live.libraries.ras import RasAnswer
from doctor.live.messages import DECODER, LibraryMessage
from doctor.live.redaction import redacted
from tests.support.library_texts import job_of, sample, seen

SECRET = "hf_" + "a1B2c3D4" * 4


def test_texts_are_redacted() -> None:
    said = LibraryText(source="hccl-heartbeat", name=f"/x/{SECRET}", text=f"lost {SECRET}", problem=SECRET)
    (host,) = seen(job_of(1), said).hosts
    (kept,) = redacted(host).libraries
    assert not any(SECRET in each for each in (kept.name, kept.text, kept.problem))


def test_an_answer_of_ras_is_understood_after_that() -> None:
    said = LibraryText(source="nccl-ras", name="x", text=sample("ras_missing_2.29.json"))
    (host,) = seen(job_of(1), said).hosts
    assert isinstance(decoded(redacted(host).libraries[0].text, RasAnswer), RasAnswer)


def test_a_recording_keeps_the_text() -> None:
    evidence = seen(job_of(1), LibraryText(source="nccl-ras", name="x", text=sample("ras_missing_2.29.json")))
    assert msgspec.json.decode(encoded(evidence), type=LiveEvidence) == evidence


def test_the_message_of_an_agent() -> None:
    line = b'{"say": "library", "text": {"source": "nccl-ras", "name": "x", "pid": null, "text": "{}"}}'
    assert DECODER.decode(line) == LibraryMessage(LibraryText(source="nccl-ras", name="x", text="{}"))
