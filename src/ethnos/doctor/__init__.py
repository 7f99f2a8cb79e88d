"""What `ethnos doctor` looks at, before a run does: each check is a function that returns findings."""

from ethnos.doctor.examine import examine
from ethnos.doctor.finding import Finding, Level

__all__ = ["Finding", "Level", "examine"]
