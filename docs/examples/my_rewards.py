"""A reward function as many repositories have it, to be attacked: `--function my_rewards:accuracy_reward`."""

import re


def accuracy_reward(completions, solution, **kwargs):
    """1.0 where the last number of the response is the last number of the solution."""
    rewards = []
    for completion, key in zip(completions, solution, strict=True):
        numbers = re.findall(r"-?\d+(?:\.\d+)?", completion[-1]["content"])
        rewards.append(float(bool(numbers) and numbers[-1] == re.findall(r"-?\d+(?:\.\d+)?", key)[-1]))
    return rewards
