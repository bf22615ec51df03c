"""Pages for people: plots and self-contained HTML."""
