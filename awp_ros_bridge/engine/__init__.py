"""The session engine: sessions, grants, actions, channels; no clock, no socket, no thread."""
