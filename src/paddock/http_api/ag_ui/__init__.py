"""The AG-UI door. AG-UI's names are spoken here and nowhere else."""
