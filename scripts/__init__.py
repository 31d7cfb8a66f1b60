"""Commands. Each only parses its arguments and calls into the packages."""
