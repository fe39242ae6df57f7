"""A chat model as the judge: what it sees, what it may look up, how its reply is read, and the loop around it."""
