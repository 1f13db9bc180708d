"""Trials of `doctor slow`: the fault of a job in the lab is changed, and compared with who is named."""
