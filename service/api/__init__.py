"""HTTP: bodies, routes, probes and the one table of statuses."""
