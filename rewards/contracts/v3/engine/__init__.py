"""Whether two scalars are equal, by tiers of bounded cost. `algebra` is the door."""
