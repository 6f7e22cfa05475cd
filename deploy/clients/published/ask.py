"""Asks a service for a ranking through one published client; runs in that client's environment.

    python ask.py NAME URL QUERY '["ad", ...]'

Prints `[[index, score], ...]`, the best first. Each function is what its maker's documentation
shows, with nothing changed but the address.
"""

from __future__ import annotations

import json
import sys
import urllib.request
from collections.abc import Callable
from typing import Any

Ranking = list[tuple[int, float]]


def cohere(url: str, query: str, ads: list[str]) -> Ranking:
    """Cohere's own."""
    from cohere import ClientV2

    answer = ClientV2(api_key="none", base_url=url).rerank(
        model="rerank-v3.5", query=query, documents=ads
    )
    return [(one.index, one.relevance_score) for one in answer.results]


def infinity_client(url: str, query: str, ads: list[str]) -> Ranking:
    """Infinity's own."""
    from infinity_client import Client
    from infinity_client.api.default import rerank
    from infinity_client.models import RerankInput

    body = RerankInput(query=query, documents=ads, model="any")
    answer: Any = rerank.sync(client=Client(base_url=url), body=body)
    return [(one.index, one.relevance_score) for one in answer.results]


def tritonclient(url: str, query: str, ads: list[str]) -> Ranking:
    """Triton's own; its protocol does not sort."""
    import numpy as np
    from tritonclient.http import InferenceServerClient, InferInput

    client = InferenceServerClient(url.removeprefix("http://"))
    with urllib.request.urlopen(f"{url}/v1/model") as answer:  # noqa: S310  # the user's own
        model = json.load(answer)["model"]["name"]
    tensors = []
    for name, texts in (("query", [query]), ("ad", ads)):
        tensor = InferInput(name, [len(texts)], "BYTES")
        tensor.set_data_from_numpy(np.array(texts, object))
        tensors.append(tensor)
    scores = client.infer(model, tensors).as_numpy("score").tolist()
    return sorted(enumerate(scores), key=lambda entry: -entry[1])


def litellm(url: str, query: str, ads: list[str]) -> Ranking:
    """LiteLLM's rerank for Cohere's API."""
    from litellm import rerank

    answer = rerank(
        model="cohere/any", query=query, documents=ads, top_n=len(ads), api_key="none",
        api_base=f"{url}/v1/rerank",
    )  # fmt: skip
    return [(one["index"], one["relevance_score"]) for one in answer.results]


def langchain_cohere(url: str, query: str, ads: list[str]) -> Ranking:
    """LangChain's compressor for Cohere."""
    from langchain_cohere import CohereRerank

    reranker = CohereRerank(model="any", cohere_api_key="none", base_url=url, top_n=len(ads))
    return [(one["index"], one["relevance_score"]) for one in reranker.rerank(ads, query)]


def langchain_jina(url: str, query: str, ads: list[str]) -> Ranking:
    """LangChain's compressor for Jina, whose address is a constant of its module."""
    from langchain_community.document_compressors import JinaRerank, jina_rerank

    jina_rerank.JINA_API_URL = f"{url}/v1/rerank"
    reranker = JinaRerank(jina_api_key="none", top_n=len(ads))
    return [(one["index"], one["relevance_score"]) for one in reranker.rerank(ads, query)]


def llama_index_cohere(url: str, query: str, ads: list[str]) -> Ranking:
    """LlamaIndex's postprocessor for Cohere."""
    from llama_index.postprocessor.cohere_rerank import CohereRerank

    reranker = CohereRerank(api_key="none", base_url=url, top_n=len(ads))
    return _llama_index(reranker, query, ads)


def llama_index_jina(url: str, query: str, ads: list[str]) -> Ranking:
    """LlamaIndex's postprocessor for Jina."""
    from llama_index.postprocessor.jinaai_rerank import JinaRerank

    reranker = JinaRerank(api_key="none", base_url=f"{url}/v1", top_n=len(ads))
    return _llama_index(reranker, query, ads)


def llama_index_tei(url: str, query: str, ads: list[str]) -> Ranking:
    """LlamaIndex's postprocessor for text-embeddings-inference."""
    from llama_index.postprocessor.tei_rerank import TextEmbeddingInference

    return _llama_index(TextEmbeddingInference(base_url=url, top_n=len(ads)), query, ads)


def _llama_index(reranker: Any, query: str, ads: list[str]) -> Ranking:  # noqa: ANN401
    from llama_index.core.schema import NodeWithScore, TextNode

    nodes = [NodeWithScore(node=TextNode(text=ad), score=0.0) for ad in ads]
    ranked = reranker.postprocess_nodes(nodes, query_str=query)
    return [(ads.index(one.node.text), one.score) for one in ranked]


CLIENTS: dict[str, Callable[[str, str, list[str]], Ranking]] = {
    function.__name__: function
    for function in (
        cohere, infinity_client, langchain_cohere, langchain_jina, litellm, llama_index_cohere,
        llama_index_jina, llama_index_tei, tritonclient,
    )
}  # fmt: skip


if __name__ == "__main__":
    name, url, query, ads = sys.argv[1:]
    print(json.dumps(CLIENTS[name](url, query, json.loads(ads))))
