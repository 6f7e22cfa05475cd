"""A second model that scores a share of the answers again, unseen by callers, to be compared."""
