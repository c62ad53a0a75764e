"""Clients that ask for far too much, and one beside them that asks for little."""
