"""What an examination costs, in time and in work, compared with tools that people already use."""
