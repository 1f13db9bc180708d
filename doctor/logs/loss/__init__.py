"""The losses that a job printed: read from its lines, judged, and drawn.

lines -> collect -> Curve -> judge -> Charge
                          -> picture
"""
