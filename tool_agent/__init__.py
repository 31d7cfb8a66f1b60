"""The system around the model; so far the protocol that every text generator follows."""
