"""The smoke run: a short real parallel training that names what is wrong.

Kept empty: `doctor.smoke.hook` is imported by people's own training scripts and must not slow them down.
"""
