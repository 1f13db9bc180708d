"""`doctor`, without the repeats that follow a fault: a trial asks only what the first run says."""

from __future__ import annotations

from doctor import rehearsal
from doctor.__main__ import main

if __name__ == "__main__":
    rehearsal.REPEATS = 0
    main()
