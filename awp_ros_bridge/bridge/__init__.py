"""The one loop that owns the engine, and the wiring of everything around it."""
