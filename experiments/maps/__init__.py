"""What do attention maps show, and what do they hide?"""
