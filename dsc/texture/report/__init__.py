"""The report of a texture evaluation: what it shows, and the page."""
