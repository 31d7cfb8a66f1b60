"""What the attack suite tries, a module for each kind of target: values, structures, whole responses, the process."""
