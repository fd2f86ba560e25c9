"""What every request needs: connections, who is calling, bodies, errors, routing, limits."""
