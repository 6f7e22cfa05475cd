"""The parts of `finetune`: heads and losses, rows, models, and the folder of a run under way."""
