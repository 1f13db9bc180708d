"""Opens the inputs, bounded in every way, and hands out their text.

    given    Sources: files, folders, archives and standard input -> one InputFile after the other
    text     InputFile -> pieces of about 1 MB that end at a line end

Nothing is written, no link is followed, and an archive is read as a stream. `left_out` lists what is not
read, with its reason; a damaged file counts up to the damage.
"""

from doctor.logs.sources.limits import DamagedInput, OmittedInputs, ReadLimits
from doctor.logs.sources.opener import Given, InputFile, Sources
from doctor.logs.sources.text import pieces

__all__ = ["DamagedInput", "Given", "InputFile", "OmittedInputs", "ReadLimits", "Sources", "pieces"]
