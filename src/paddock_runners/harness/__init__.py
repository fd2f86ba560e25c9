"""What the runners of coding harnesses share: a process kept on a short lead, what it says in our words, and its end.

Each harness's own language is in its runner's folder; here are the parts that must not differ between them.
"""
