"""Contract v3: read every answer, bound every cost, prove every verdict. `contract` is its door."""
