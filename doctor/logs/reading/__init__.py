"""Reads the text of a file: the symptoms of each party, who wrote it, how far it got.

window    the text as it comes by: lines with their numbers and neighbours
lines     the lines of a window by their sentences, and what to look for in each
readers   large files, each read by a process of its own
scan      one file, in memory that does not grow with it
losses    the lines that print a loss, many at once
fold      the same symptom of one party: first, last, count
writers   which ranks write in a window
progress  the last line of each rank that names a step
resolve   who wrote a file and its lines, from everything that was read
"""
