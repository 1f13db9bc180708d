"""Reports that programs read: JSON, JUnit XML, gauges."""
