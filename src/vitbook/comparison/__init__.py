"""A token mixer of one's own, put to the test that the book's layers were put to."""
