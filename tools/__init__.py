"""What the Makefile calls: one module for each command, and the parts that several share."""
