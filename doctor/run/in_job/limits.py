"""Seconds."""

BEAT = 2.0
SILENT = 10.0
"""Without a word a rank is taken for lost."""
SLEPT = 4.0
"""A pause of our own so long says nothing about others."""
JOIN = 60.0
"""For all ranks to come."""
SOON = 1.0
"""Who has not answered a call by then is looked at."""
ANSWER = 2.0
TAKE = 3.0
"""For all ranks to have the verdict."""
