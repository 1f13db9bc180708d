"""What `doctor.smoke.hook` loads at its first call. Runs inside people's own jobs, on Python 3.8 and later,
with the standard library alone; torch is used only if the job has loaded it.
"""
