"""Decides what a returning agent may still act on."""
