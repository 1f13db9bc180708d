"""What runs on the hosts, sent to them as text: standard library only, and torch in the ranks.

The agent and what it imports run on Python 3.6 and later, the rest on 3.8 and later. Nothing here imports
anything of ours from outside this folder but `agents.onhost`. The controller imports the parts without torch,
to know what every rank must do and draw.
"""
