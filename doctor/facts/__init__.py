"""What can be known of a host: one file a subsystem, each fact a command, a pure parser and a frozen type.

Parsers read what the tools of many systems print, also cut off or with unknown extra lines; what they
cannot read at all raises NotUnderstood and nothing else.
"""
