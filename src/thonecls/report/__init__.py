"""What is shown of a map: all pictures, and the page that says how far to trust it."""
