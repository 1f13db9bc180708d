"""What several check files share when they judge: pure functions from facts to problems."""
