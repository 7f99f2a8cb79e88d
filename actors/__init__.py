"""Agents as Ray actors: what hosts them, their minds, and the inference pool their minds think with."""
