"""The answers that every check is held against: one module for each module of `vitcheck`."""
