"""One run over the hosts: ask them, connect them, train on them, and judge what was recorded."""
