"""The variables by which launchers number ranks; in the archive, those that were known when it was made."""

from __future__ import annotations

from doctor.job.launch.brief import rank_rows

ROWS = rank_rows()
