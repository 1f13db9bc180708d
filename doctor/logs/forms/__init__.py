"""What a line is, who wrote it, and when.

    Layout    what a file's first lines say of all its lines: Slurm's labels, hosts in front
    said      one line -> Said: its form, level, time, and the rank, host, process and device that wrote it
    names     the same of a file's name and folders
    learn     lines that say which rank a process is, and how many ranks there are
    complaint lines that complain, and what makes two of them the same

Nothing here knows a symptom. A line of no known form is plain; what a line does not say stays empty.
"""
