"""Sessions as clients see them: their copy of the history compared with ours, and the limits and signed addresses of
attached files.

Files and transcripts themselves are kept by `storage/`.
"""
