"""Jobs that end by one fault, in the lab, and the logs that they leave behind."""
