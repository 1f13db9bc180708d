"""Reads the logs of a job that ended, and names the rank that ended it and the checks that can prove it.

    inputs -> sources/ -> forms/ + symptoms/ -> Logs -> judge/ -> Conclusion -> Report

`sources/` opens the input, `forms/` finds out what a line is and who wrote it, `symptoms/` holds the known
messages (data in playbooks/symptoms), `loss/` reads curves, `judge/` finds the first guilty rank.
Nothing here touches a host.
"""
