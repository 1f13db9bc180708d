"""`doctor run -- COMMAND`: a pre-flight, then the command, a look if it stands still, and why it ended.

Nothing is judged here: the other rooms do that. The command's output passes through
`relay/`, which survives doctor.
"""
