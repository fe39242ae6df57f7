"""Studies: methods compared where the truth is known."""
