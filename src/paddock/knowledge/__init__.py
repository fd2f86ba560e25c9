"""Knowledge bases: documents come in as jobs, are read in a child process, cut into passages, and found again."""
