"""Several hosts: leases, the shared secret and signatures."""
