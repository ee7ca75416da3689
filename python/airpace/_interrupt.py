"""Stops code of Python that runs in another thread: a controller that does not return, when Ctrl-C is pressed."""

from __future__ import annotations


def interrupt(thread: int) -> None:
    """Raises `KeyboardInterrupt` in a thread, at its next step in Python."""
    # Imported here: `import airpace` is to take no time.
    import ctypes

    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(KeyboardInterrupt))
