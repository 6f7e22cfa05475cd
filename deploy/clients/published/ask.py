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


def cohere_v1(url: str, query: str, ads: list[str]) -> Ranking:
    """Cohere's own, first API, with objects that it must give back."""
    from cohere import Client

    answer: Any = Client(api_key="none", base_url=url).rerank(
        model="any",
        query=query,
        documents=[{"text": ad, "url": f"https://ads.example/{i}"} for i, ad in enumerate(ads)],
        return_documents=True,
    )
    assert all(one.document.text == ads[one.index] for one in answer.results)  # noqa: S101
    return [(one.index, one.relevance_score) for one in answer.results]


def cohere_v2(url: str, query: str, ads: list[str]) -> Ranking:
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

    client = Client(base_url=url)
    body = RerankInput(query=query, documents=ads, model="any", return_documents=True)
    answer: Any = rerank.sync(client=client, body=body)
    assert all(one.document == ads[one.index] for one in answer.results)  # noqa: S101
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


def litellm_cohere(url: str, query: str, ads: list[str]) -> Ranking:
    """LiteLLM's provider for Cohere."""
    return _litellm(f"{url}/v1/rerank", "cohere", query, ads)


def litellm_infinity(url: str, query: str, ads: list[str]) -> Ranking:
    """LiteLLM's provider for Infinity."""
    return _litellm(url, "infinity", query, ads)


def litellm_jina(url: str, query: str, ads: list[str]) -> Ranking:
    """LiteLLM's provider for Jina."""
    return _litellm(f"{url}/v1/rerank", "jina_ai", query, ads)


def litellm_vllm(url: str, query: str, ads: list[str]) -> Ranking:
    """LiteLLM's provider for vLLM, whose bodies at `/rerank` are the same as for Infinity."""
    return _litellm(f"{url}/v1", "hosted_vllm", query, ads)


def _litellm(api_base: str, provider: str, query: str, ads: list[str]) -> Ranking:
    from litellm import rerank

    answer = rerank(
        model=f"{provider}/any", query=query, documents=ads, top_n=len(ads), api_key="none",
        api_base=api_base,
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
        cohere_v1, cohere_v2, infinity_client, langchain_cohere, langchain_jina, litellm_cohere,
        litellm_infinity, litellm_jina, litellm_vllm, llama_index_cohere, llama_index_jina,
        llama_index_tei, tritonclient,
    )
}  # fmt: skip


if __name__ == "__main__":
    name, url, query, ads = sys.argv[1:]
    print(json.dumps(CLIENTS[name](url, query, json.loads(ads))))
