"""From the logs of a job that ended to the rank that ended it, and the checks that prove it.

    given -> sources/ -> forms/ + symptoms/ -> Logs -> judge/ -> Conclusion -> Report

`sources/` opens what was given, `forms/` says what a line is and who wrote it, `symptoms/` holds what is
known of messages (data in playbooks/symptoms), `loss/` reads curves, `judge/` finds the first guilty rank.
Nothing here touches a host.
"""
