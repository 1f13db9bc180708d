"""Shortens the command in a launcher's line about the end of a rank: its arguments hide how it ended.

Its local rank goes too: DeepSpeed and old torch.distributed.launch print the command that they started last,
whichever rank ended.
"""

import re

ENDED = ("] exits with return code = ", "CalledProcessError: Command '[")
_COMMAND = re.compile(
    r"(?:(?<=sigkill_handler\] \[)|(?<=CalledProcessError: Command '\[))(?P<program>'[^']{1,400}').*"
    r"(?=\] exits with return code = |\]' (?:died with|returned non-zero))"
)
_RANK = re.compile(r"'--local_rank=\d{1,4}'")


def shortened(text: str) -> str:
    """ "['/usr/bin/python3', …, '--local_rank=3', …] exits with return code = -9" """

    def short(found: re.Match[str]) -> str:
        return f"{found['program']}, …" if _RANK.search(found[0]) else found[0]

    return _COMMAND.sub(short, text, count=1)
