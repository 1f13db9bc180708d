"""An exam of foreign cases: logs and jobs of strangers, with their truth, for which no rule was made.

cases    what is asked of a log, and which answers are right; the two halves
answers  what `doctor explain` answers to each log
jobs     what is asked of the evidence of a job, and what `doctor hang` and `doctor slow` answer
weigh    each condition of the judge switched off alone: which answers change
"""
