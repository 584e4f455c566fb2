"""What makes the recorded runs: one script for each experiment; see README.md in this folder."""
