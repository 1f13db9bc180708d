"""The facts about a host: one file per subsystem; each fact is a command, a pure parser and a frozen type.

Parsers read the output of tools on many systems, even if it is cut off or has unknown extra lines. If they
cannot read it at all, they raise UnreadableOutput and nothing else.
"""
