"""`doctor slow`: which rank or link the other ranks of a moving job wait for, how long, and why."""
