"""HTTP on loopback: one TLS context for every client of the tests, which none of them uses and each would make anew.

Making one reads all certificates of the world and takes longer than a request.
"""

import ssl

NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Trusts nobody."""
