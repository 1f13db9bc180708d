"""`doctor`, without the repeats that follow a fault: a trial needs only the result of the first run."""

from __future__ import annotations

from doctor.__main__ import main
from doctor.run import smoke_rounds

if __name__ == "__main__":
    smoke_rounds.REPEATS = 0
    main()
