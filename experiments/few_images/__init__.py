"""What can be done with few pictures, or with one's own?"""
