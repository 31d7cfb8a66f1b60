"""The attack suite: cases with a known truth, run against any reward function."""
