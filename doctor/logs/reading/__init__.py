"""Reads the text of a file: the symptoms of each party, who wrote it, how far it got.

window     the text piece by piece: lines with their numbers and neighbours
sentences  what to look for in the lines of each sentence
lines      the lines of a window by their sentences
readers    large files, each read by a process of its own
scan       one file, in memory that does not grow with it
losses     the lines that print a loss, many at once
fold       the same symptom of one party: first, last, count
writers    which ranks write in a window
progress   the last line of each rank that names a step
stacks     where a rank was when Ctrl-C ended it
cut_off    tracebacks that end with the log
attempts   the starts of the job in one file
jobs       which files belong to which job
resolve    who wrote a file and its lines, from everything that was read
"""
