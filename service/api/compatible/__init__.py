"""Other servers' protocols, for clients that speak them already: the same scorer, the same scores.

    dialects        how each family of clients wants its errors
    calls           one call: read, answered, counted, its errors in its dialect
    pair_scoring    the pairs of any protocol, all scored or an error
    documents       documents as strings or objects, ranked
    tei, cohere_jina, vllm, open_inference     the protocols themselves, with `_bodies` beside them
    open_inference_scoring, tensors     one request of the last of them, as JSON and as bytes
    rerank          POST /rerank, which three of them share
    routes          all of it in one list

These protocols have no word for a pair that could not be scored in time, so a request of theirs is
answered whole or with an error. Bodies are read leniently: unknown fields are let pass.
"""
