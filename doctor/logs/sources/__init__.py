"""Opens what was given, bounded in every way, and hands out its text.

    given    Sources: files, folders, archives and standard input -> one Opened after the other
    text     Opened -> pieces of about 1 MB that end where a line ends

Nothing is written, no link is followed, and an archive is read as a stream. What is not read is in
`left_out` with its reason; a file that breaks off counts as far as it goes.
"""

from doctor.logs.sources.given import Given, Opened, Sources
from doctor.logs.sources.limits import Damaged, LeftOut, Limits
from doctor.logs.sources.text import pieces

__all__ = ["Damaged", "Given", "LeftOut", "Limits", "Opened", "Sources", "pieces"]
