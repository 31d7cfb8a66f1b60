"""The use in training: GRPO with verified rewards, the warm start, the embedded tiny model."""
