"""The numbers: problem sets, generators, the one evaluation loop, rates with their intervals."""
