"""How a part of a file ends at a place where its job may have been started again."""

from enum import Enum


class PartEnd(Enum):
    """How a part ends."""

    FAILED = "failed"
    """torchrun saw a rank fail and ended the others."""
    RESTART = "restart"
    """torchrun says that it will restart the ranks."""
    ENDED = "ended"
    """The scheduler ended the job; it may start it again."""
    OVER = "over"
    """torchrun itself ended."""
    AGAIN = "again"
    """The next line is the one with which the file begins: another job appended its output."""
    BEGUN = "begun"
    """The program ended, and the next lines are those with which it began."""
