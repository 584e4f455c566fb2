"""What the book is made with: recorded experiments, intervals, glued numbers, baselines."""
