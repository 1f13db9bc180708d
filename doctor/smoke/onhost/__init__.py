"""The code that runs on the hosts, sent to them as text: standard library only, plus torch in the ranks.

The agent and what it imports run on Python 3.6 and later, the rest on 3.8 and later. Modules here import only
each other and `agents.onhost` from our code. The controller imports the parts without torch, to know what
every rank must do and draw.
"""
