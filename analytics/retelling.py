"""What became of texts that were told again: how alike they are, how cheerful, which words last, who begot whom.

For the transmission chain, whose record says of every telling which texts went into it.
"""

import math
import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

from duckdb import DuckDBPyConnection

from ethnos.analytics.asking import Row, rows
from ethnos.errors import RunError

PAIRS = 2_000
"""Most pairs of a generation that are compared: those whose number is a multiple of what keeps it below."""

_WORD = re.compile(r"\w+")

TOLD = """
SELECT tick AS generation, agent_id AS teller, artifact_id AS number, text, CAST(parents AS JSON)::BIGINT[] AS parents
FROM told ORDER BY artifact_id
"""
GIVEN = "SELECT DISTINCT artifact_id AS number, text FROM given ORDER BY number"

WORDS = """
WITH words AS (
    SELECT tick, artifact_id, unnest(list_distinct(regexp_extract_all(lower(text), '\\w+'))) AS word FROM told
)
SELECT word, min(tick) AS first, max(tick) AS last, count(DISTINCT artifact_id) AS tellings
FROM words GROUP BY word ORDER BY last - first DESC, tellings DESC, word
"""
"""Words and the generations in which they were told: chains that are long are what a culture keeps."""

ANCESTRY = """
WITH RECURSIVE links AS (
    SELECT artifact_id AS number, unnest(CAST(parents AS JSON)::BIGINT[]) AS parent FROM told
), above AS (
    SELECT number, parent AS ancestor, 1 AS steps FROM links WHERE number = $number
    UNION
    SELECT above.number, links.parent, above.steps + 1 FROM above JOIN links ON links.number = above.ancestor
)
SELECT ancestor, min(steps) AS steps FROM above GROUP BY ancestor ORDER BY steps, ancestor
"""


@dataclass(frozen=True)
class Generation:
    """How alike the texts of one generation are; similarities are between 0 and 1."""

    generation: int
    tellings: int
    within: float | None
    """Mean over pairs of this generation's texts; none if there are not two."""
    before: float
    """Mean over each text and those it was made from."""
    origin: float
    """Mean over each text and the stories that were given."""
    words: float
    """Mean length."""


@lru_cache(maxsize=50_000)
def _counts(text: str) -> tuple[dict[str, int], float]:
    counts = Counter(_WORD.findall(text.lower()))
    return counts, math.sqrt(sum(n * n for n in counts.values()))


def similarity(a: str, b: str) -> float:
    """Cosine of the two texts' word counts: 1 for the same words, 0 for none in common.

    >>> similarity("the old man", "The old woman")
    0.6666666666666667
    """
    (one, length), (other, other_length) = _counts(a), _counts(b)
    if not length or not other_length:
        return float(length == other_length)
    return min(1.0, sum(n * other.get(w, 0) for w, n in one.items()) / (length * other_length))


def generations(con: DuckDBPyConnection) -> list[Generation]:
    """Every generation in which something was told."""
    given = {r["number"]: str(r["text"]) for r in rows(con, GIVEN)}
    told = rows(con, TOLD)
    texts = {**given, **{r["number"]: str(r["text"]) for r in told}}
    by_generation: dict[int, list[Row]] = defaultdict(list)
    for row in told:
        by_generation[row["generation"]].append(row)
    return [_generation(g, by_generation[g], texts, list(given.values())) for g in sorted(by_generation)]


def _generation(number: int, told: list[Row], texts: dict[int, str], origins: list[str]) -> Generation:
    own = [str(r["text"]) for r in told]
    return Generation(
        generation=number,
        tellings=len(own),
        within=_mean([similarity(a, b) for a, b in _pairs(own)]),
        before=_mean([similarity(texts[r["number"]], texts[p]) for r in told for p in r["parents"]]) or 0.0,
        origin=_mean([similarity(text, origin) for text in own for origin in origins]) or 0.0,
        words=_mean([float(len(text.split())) for text in own]) or 0.0,
    )


def _pairs(texts: list[str]) -> list[tuple[str, str]]:
    step = math.ceil(len(texts) * (len(texts) - 1) / 2 / PAIRS)
    return [pair for n, pair in enumerate(combinations(texts, 2)) if n % step == 0]


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def words(con: DuckDBPyConnection) -> list[Row]:
    """Every word that was told, with its first and last generation and in how many tellings it is."""
    return rows(con, WORDS)


def ancestry(con: DuckDBPyConnection, number: int) -> list[Row]:
    """All texts that went into one, with the number of retellings between."""
    return rows(con, ANCESTRY, {"number": number})


def positivity(con: DuckDBPyConnection) -> list[tuple[int, float]]:
    """(generation, mean positivity of its texts), from -1 to 1: VADER's compound score (Hutto and Gilbert 2014).

    Raises RunError if the library for it is not installed.
    """
    try:
        from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer
    except ImportError:
        raise RunError("positivity needs a word list: pip install 'ethnos[sentiment]'") from None
    score = SentimentIntensityAnalyzer().polarity_scores
    scores: dict[int, list[float]] = defaultdict(list)
    for row in rows(con, TOLD):
        scores[row["generation"]].append(float(score(str(row["text"]))["compound"]))
    return [(g, sum(values) / len(values)) for g, values in sorted(scores.items())]


__all__ = ["Generation", "ancestry", "generations", "positivity", "similarity", "words"]
