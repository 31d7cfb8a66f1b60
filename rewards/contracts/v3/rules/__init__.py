"""How kinds of answers meet kinds of references. `structure` is the door."""
