"""The checks of the exercises: one module for each page, called like it."""
