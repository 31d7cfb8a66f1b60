"""From a text to a tree, or a refusal. `grammar` is the door."""
