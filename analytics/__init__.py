"""Reading runs: figures, and what they add up to. Knows the record and nothing that runs."""
