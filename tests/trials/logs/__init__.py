"""Jobs in the lab that end by one fault each, and the logs that they leave behind."""
