"""Named measures of a run, without a model: formula, unit, source, and what each needs on the record."""

from ethnos.analytics.measures.measure import MISSING, Measure, lacking
from ethnos.analytics.measures.registry import REGISTRY, measure

__all__ = ["MISSING", "REGISTRY", "Measure", "lacking", "measure"]
