"""What the model reads of a pair, told in terms of the texts that a person wrote."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from service.pair_seen import PairSeen, Side, SideSeen, Token, Word
from service.scoring.encoding import PairEncoder, Place


def see_pair(
    encoder: PairEncoder, query: str, ad_text: str, *, fed_segments: bool = True
) -> PairSeen:
    """One pair's tokens and words. Thread-safe.

    Args:
        encoder: The model's.
        query: What the user typed.
        ad_text: The ad as the model reads it.
        fed_segments: The model takes segment ids.
    """
    query_ids, ad_ids = encoder.tokenize([query, ad_text])
    pair = encoder.join(query_ids, ad_ids)
    n_query, n_ad = encoder.kept(len(query_ids), len(ad_ids))
    query_places, ad_places = encoder.places(query), encoder.places(ad_text)
    frame = encoder.frame
    where: list[tuple[Side, Place | None]] = [
        *[(Side.SPECIAL, None)] * len(frame.before),
        *[(Side.QUERY, place) for place in query_places[:n_query]],
        *[(Side.SPECIAL, None)] * len(frame.between),
        *[(Side.AD, place) for place in ad_places[:n_ad]],
        *[(Side.SPECIAL, None)] * len(frame.after),
    ]
    tokens = tuple(
        Token(
            text=encoder.token_text(number),
            id=number,
            segment=segment if fed_segments else None,
            side=side,
            start=place.start if place else None,
            end=place.end if place else None,
        )
        for number, segment, (side, place) in zip(
            pair.ids.tolist(), pair.type_ids.tolist(), where, strict=True
        )
    )
    return PairSeen(
        tokens,
        _side(query, query_places, n_query, cut=n_query < len(query_ids)),
        _side(ad_text, ad_places, n_ad, cut=n_ad < len(ad_ids)),
    )


def _side(text: str, places: Sequence[Place], n_kept: int, *, cut: bool) -> SideSeen:
    cut_at = max((place.end for place in places[:n_kept]), default=0) if cut else len(text)
    return SideSeen(text, tuple(_words(text, places, n_kept)), cut_at)


def _words(text: str, places: Sequence[Place], n_kept: int) -> list[Word]:
    """The words of which at least one token is kept; whole, also where some are not."""
    numbers = {place.word for place in places[:n_kept]}
    words: list[Word] = []
    for number, group in groupby(places, key=lambda place: place.word):
        of_word = list(group)
        start, end = min(p.start for p in of_word), max(p.end for p in of_word)
        # Some tokenizers count the space before a word as its beginning.
        start += len(text[start:end]) - len(text[start:end].lstrip())
        end -= len(text[start:end]) - len(text[start:end].rstrip())
        # One character can become several words: a fraction is two numbers and a bar.
        if words and start < words[-1].end:
            start, end = words[-1].start, max(end, words[-1].end)
            words[-1] = Word(text[start:end], start, end)
        elif start < end and number in numbers:
            words.append(Word(text[start:end], start, end))
    return words
