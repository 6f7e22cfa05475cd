"""Going on with BERT's own pre-training on a user's ad texts, before any label is seen."""
