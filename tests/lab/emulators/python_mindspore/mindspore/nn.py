from .ops import Cell

__all__ = ["Cell"]
