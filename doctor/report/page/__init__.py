"""What a page says, whatever writes it: faults as cards, the headline, rows of hosts, what was measured."""
