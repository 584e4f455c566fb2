"""What does attention buy, on tasks that other ways to mix tokens share?"""
