"""`doctor diff A B`: what has changed from one run to a later one: findings, facts and hosts."""
