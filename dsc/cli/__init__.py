"""The `dsc` command: parse, call one library function, render, print."""
