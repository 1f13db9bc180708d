"""What an examination costs, in time and in work, beside the tools that people already run on their hosts."""
