"""Stops Python code in another thread: on Ctrl-C, a controller may not return by itself."""

from __future__ import annotations


def interrupt(thread: int) -> None:
    """Raises `KeyboardInterrupt` in a thread at its next Python instruction."""
    # Imported here to keep `import airpace` fast.
    import ctypes

    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(KeyboardInterrupt))
