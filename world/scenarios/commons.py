"""Commons: a shared resource that grows back, and the temptation to take more than that.

A few harvesters live from one pool. Each month they talk, then each privately takes what it likes; what is
left doubles, up to the pool's capacity. If less than the collapse threshold is left, there is nothing more to
share, for ever. Taking half of what would regrow keeps the pool for all time; taking a little more ruins it in
months.

After GovSim (Piatti et al. 2024, "Cooperate or Collapse"), whose numbers are the defaults.
"""
