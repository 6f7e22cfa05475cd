"""Prometheus series of the service, by the part that they tell of, and the lines that feed them.

Base units, millisecond-scale buckets, bounded labels; every series exists before the first
request. deploy/OPERATING.md, "Metrics", says which question each one answers.
"""

from prometheus_client import disable_created_metrics

disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series each, for no question
