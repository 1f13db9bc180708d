"""The known messages: reads and checks `playbooks/symptoms/*.yaml`, and finds symptoms in lines.

    load   the files of all sources -> FoundSymptoms; reports every mistake with its place
    match  Matcher: which lines can hold a symptom, which symptoms a line holds, and what a code means

A symptom is data: literals that must stand in one line in this order. Nothing in a file is executed, and its
only regular expression (`take`) runs on a short part of a line that has already matched.
"""
