"""The losses that a job printed: reads them from its lines, judges and draws them.

lines -> collect -> Curve -> judge -> LogCause
                          -> picture
"""
