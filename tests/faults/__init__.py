"""Seeded faulty emissions: what a wrong emitter would write, each of which the checker must refuse."""
