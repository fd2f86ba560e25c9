"""Parts that every request needs: connections, who is calling, how operations are declared and read, errors, limits."""
