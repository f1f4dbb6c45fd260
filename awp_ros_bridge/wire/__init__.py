"""The Agent World Protocol on the wire: messages, codec, frames, error codes, lifecycle tables."""
