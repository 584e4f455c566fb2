"""What does attention compute, and what does it cost?"""
