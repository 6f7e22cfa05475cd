"""Where the training pairs of a student come from: files of pairs, of products and of queries."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from model_export.distillation.pair_sampling import Texts, Variation, sample_pairs, vary_pairs
from model_export.distillation.recipe import DistilRecipe
from model_export.distillation.rewording import Rewording
from model_export.errors import BadPairsFile, ExportError
from model_export.held_out_queries import query_key, query_keys, shared_queries
from model_export.judgements import parse_relevance
from model_export.pair_files import Row, read_rows
from model_export.pair_notes import ignored_columns
from model_export.pairs import parse_ad, parse_query
from model_export.text_files import read_text
from service.scoring.ad_template import AdTemplate


@dataclass(frozen=True, slots=True)
class Sources:
    """What was read.

    Attributes:
        labels: By (query, ad text) the relevance in 0-1, None where nobody judged the pair.
        ads: Texts of ads by the file that they are from, pairs' or products', to be paired with
            queries; empty where there are no products.
        queries: To be paired with ads.
    """

    labels: dict[Texts, float | None]
    ads: list[list[str]] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)


def read_sources(
    pairs: Sequence[Path],
    products: Sequence[Path],
    queries: Sequence[Path],
    *,
    max_grade: float | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Sources:
    """Read all files.

    Args:
        pairs: JSONL or CSV; `query`, the ad, and what people said if they said anything.
        products: JSONL or CSV of ads: `title` and `description`, or `text`.
        queries: JSONL or CSV with `query`, or (`.txt`) one query a line.
        max_grade: As in `read_pairs`.
        tell: Told which columns of pairs and products nothing reads.

    Raises:
        BadPairsFile: Path, line and reason.
    """
    render = AdTemplate().render
    labels: dict[Texts, float | None] = {}
    ads: list[list[str]] = []
    for path in pairs:
        ads.append([])
        for line, row in _told_rows(path, tell):
            with _naming(path, line):
                texts = parse_query(row), render(parse_ad(row, line))
                label = parse_relevance(row, max_grade)
                labels[texts] = labels.get(texts) if label is None else label
                ads[-1].append(texts[1])
    for path in products:
        ads.append([])
        for line, row in _told_rows(path, tell):
            with _naming(path, line):
                ads[-1].append(render(parse_ad(row, line)))
    return Sources(
        labels,
        ads if products else [],
        [query for path in queries for query in _read_queries(path)],
    )


def training_pairs(
    sources: Sources,
    held_out: Collection[str],
    recipe: DistilRecipe,
    rewording: Rewording | None = None,
) -> dict[Texts, float | None]:
    """By (query, ad text) the label, or None: the pairs as they were read, then the sampled ones.

    Args:
        sources: What was read.
        held_out: Queries of the dev files, which no training pair may have, see `query_key`.
        recipe: How many pairs to sample, and how.
        rewording: Swaps words, where the recipe asks for it; None samples texts as they are.

    Raises:
        ExportError: A pair has a held-out query, there are queries without products, no pairs or
            queries to vary, or no pairs at all.
    """
    shared = shared_queries((query for query, _ in sources.labels), held_out)
    if shared:
        raise ExportError(
            f"{len(shared)} queries are in the dev files and in the training pairs (but for case "
            f"and white space), such as {shared[0]!r}: figures on them would say nothing"
        )
    if sources.queries and not sources.ads:
        raise ExportError("there are queries, and no products to pair them with")
    if recipe.varied_pairs and not sources.labels:
        raise ExportError(
            f"varied_pairs is {recipe.varied_pairs}, and there are no pairs to vary: give --pairs"
        )
    kept_out = query_keys(held_out)
    made = dict(sources.labels)
    variation = (
        None if rewording is None else Variation(rewording, recipe.reworded_share, recipe.cut_share)
    )
    if sources.ads and recipe.sampled_pairs:
        queries = [
            query
            for query in (*sources.queries, *(query for query, _ in made))
            if query_key(query) not in kept_out
        ]
        if recipe.reworded_share and recipe.pseudo_query_share < 1 and not queries:
            raise ExportError(
                f"reworded_share is {recipe.reworded_share:g}, and there are no queries whose "
                "words could be swapped, the dev files' apart: give --queries or --pairs, or "
                "--pseudo-query-share 1, which takes spans of the ads' words alone"
            )
        sampled = sample_pairs(
            queries,
            sources.ads,
            recipe.sampled_pairs,
            pairs_per_query=recipe.pairs_per_query,
            pseudo_query_share=recipe.pseudo_query_share,
            seed=recipe.seed,
            variation=variation,
        )
        _add(made, sampled, kept_out)
    if variation is not None and sources.labels:
        varied = vary_pairs([*sources.labels], recipe.varied_pairs, variation, recipe.seed)
        _add(made, varied, kept_out)
    if not made:
        raise ExportError("there are no training pairs: give pairs, or products")
    return made


def _add(
    made: dict[Texts, float | None], pairs: Sequence[Texts], kept_out: Collection[str]
) -> None:
    for pair in pairs:
        if query_key(pair[0]) not in kept_out:
            made.setdefault(pair, None)


def _read_queries(path: Path) -> list[str]:
    if path.suffix.lower() == ".txt":
        lines = read_text(path).split("\n")
        return [line.strip() for line in lines if line.strip()]
    queries = []
    for line, row in read_rows(path):
        with _naming(path, line):
            queries.append(parse_query(row))
    return queries


def _told_rows(path: Path, tell: Callable[[str], None]) -> Iterator[tuple[int, Row]]:
    """As `read_rows`; after the last row `tell` is told which columns nothing reads."""
    columns: set[str] = set()
    for line, row in read_rows(path):
        columns |= row.keys()
        yield line, row
    if ignored := ignored_columns(columns):
        tell(f"note: {path}: {ignored}")


@contextlib.contextmanager
def _naming(path: Path, line: int) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise BadPairsFile(f"{path}, line {line}: {error}") from error
