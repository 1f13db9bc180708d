"""What the kernel said before or after the job is not a cause of its end."""

from __future__ import annotations

from datetime import datetime

from doctor.around.after import lines_between

LOG = (
    b"2026-11-20T09:59:00,000001+00:00 python invoked oom-killer\n"
    b"  a line that goes on\n"
    b"2026-11-20T10:00:30,000001+00:00 eth0: link down\n"
    b"  and on\n"
)


def test_only_lines_from_the_time_of_the_job_count() -> None:
    began = datetime.fromisoformat("2026-11-20T10:00:00+00:00").timestamp()
    assert lines_between(LOG, began, began + 60) == LOG[LOG.index(b"2026-11-20T10:00:30") :]
    assert lines_between(LOG, 0, began) == LOG[: LOG.index(b"2026-11-20T10:00:30")]
    assert lines_between(LOG, began, began + 20) == b""
