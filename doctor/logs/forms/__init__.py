"""Finds out what a line is, who wrote it, and when.

    prefix      prefixes that all lines of a file share: Slurm's labels, hosts in front
    line_facts  one line -> LineFacts: its form, level, time; the rank, host, process and device that wrote it
    names       who wrote a file, by its name and folders
    learn       lines that show which rank a process is, and how many ranks there are
    complaint   lines that complain, and when two of them count as the same

Nothing here knows a symptom. A line of unknown form is plain; a field that the line does not state is empty.
"""
