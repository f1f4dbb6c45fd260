"""Owns how the time of day is written."""

from __future__ import annotations

from datetime import datetime


def utc_text(at: datetime, timespec: str) -> str:
    """
    Return a time of UTC as RFC 3339 writes it.

    :param timespec: how exactly, as :meth:`datetime.datetime.isoformat` takes it.
    """
    return at.isoformat(timespec=timespec).replace('+00:00', 'Z')
