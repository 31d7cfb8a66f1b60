"""From a response to the answer in it. `extract` is the door."""
