"""What is known of messages: `playbooks/symptoms/*.yaml`, read, checked, and found in lines.

    load   the files of all sources -> FoundSymptoms, every mistake with its place
    match  Matcher: which lines of a chunk can hold one, which symptoms a line holds, and what a code means

A symptom is data: literals that stand in one line in their order. Nothing of a file is executed, and its
only regular expression (`take`) runs on a short window of a line that matched already.
"""
