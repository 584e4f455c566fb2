"""What maintainers run: a module for each command of the Makefile that does not make the site."""
