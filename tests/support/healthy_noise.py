"""Lines that healthy jobs print, some of which look like trouble."""

from tests.support.cases import from_cases

NUMBERS = from_cases(__file__, "NUMBERS", tuple[str, ...])
EARLY = from_cases(__file__, "EARLY", tuple[str, ...])
"""Lines about the rendezvous, which come first."""
NOISE = (*NUMBERS, *from_cases(__file__, "NOISE", tuple[str, ...]))
ELASTIC = from_cases(__file__, "ELASTIC", tuple[str, ...])
NCCL = from_cases(__file__, "NCCL", tuple[str, ...])
