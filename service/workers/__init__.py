"""Several processes that serve on one port, and the supervisor that keeps them up.

The supervisor holds the listening sockets and a link to each worker, answers no request and knows
no model. A worker is the one process of `service.serve` with a link.
"""
