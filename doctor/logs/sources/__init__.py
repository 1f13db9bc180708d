"""Opens the inputs, bounded in every way, and hands out their text.

    opener   Sources: files, folders, archives and standard input -> one InputFile after the other
    text     InputFile -> pieces of about 1 MB that end at a line end

Nothing is written, no link is followed, and an archive is read as a stream. `left_out` lists what is not
read, with its reason; a damaged file counts up to the damage.
"""

from doctor.logs.sources.limits import DamagedInput, ReadLimits
from doctor.logs.sources.opener import Input, InputFile, Sources
from doctor.logs.sources.text import pieces

__all__ = ["DamagedInput", "Input", "InputFile", "ReadLimits", "Sources", "pieces"]
