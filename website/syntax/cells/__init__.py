"""What becomes of a cell and of what it shows: folds, failures, pictures, code of the package."""
