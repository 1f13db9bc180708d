"""An exam of foreign cases: logs of strangers, with the truth about each, for which no rule was made.

cases    what is asked, and which answers are right; the two halves
answers  what `doctor explain` answers to each log
weigh    each condition of the judge switched off alone: which answers change
"""
