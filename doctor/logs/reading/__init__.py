"""One file's text -> what it says: the symptoms of each party, who wrote it, how far it got.

window    the text as it comes by: lines with their numbers and neighbours
lines     the lines of a window by their sentences, and what each is looked at for
readers   large files, each read by a process of its own
scan      one file, in memory that does not grow with it
losses    the lines that print a loss, many at once
fold      the same symptom of one party: first, last, count
writers   which ranks write in a window
progress  the last line of each rank that says how far it is
resolve   who wrote a file and its lines, from all that was read of it and of the others
"""
