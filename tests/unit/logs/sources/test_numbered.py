"""Whether `grep -n` wrote the numbers of lines in front of a text."""

import pytest

from doctor.logs.sources.text import is_numbered


@pytest.mark.parametrize(
    ("text", "numbered"),
    [
        ("118:Traceback\n119:  File\n120:    main()\n121:KeyError\n", True),
        ("a.log:7:step\na.log:9:step\nb.log:3:step\n", True),
        ("7-step\n8:step\n9-step\n", True),
        ("4:a\n4:b\n4:c\n", False),
        ("node1:0:a\nnode2:1:b\nnode1:0:c\n", False),
        ("1:2.31\n2:2.21\n3:2.11\n", False),
        ("1: loss\n2: loss\n3: loss\n", False),
        ("7:step\n8:step\n", False),
        ("10:11:12 a\n10:11:13 b\n10:11:14 c\n", False),
    ],
)
def test_numbers_of_lines(text: str, numbered: bool) -> None:
    assert is_numbered(text.encode()) is numbered
