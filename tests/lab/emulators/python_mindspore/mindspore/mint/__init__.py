from torch import matmul, split

from . import distributed

__all__ = ["distributed", "matmul", "split"]
