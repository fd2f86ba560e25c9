"""Finding out what works: `doctor` and `harness doctor`."""
