"""Radio samples to the messages of a cell's control channel."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from airpace import _airpace
from airpace._airpace import Table
from airpace._arguments import number, whole

if TYPE_CHECKING:
    import numpy.typing as npt


def decode(
    samples: npt.ArrayLike,
    rate: float,
    *,
    pci: int | None = None,
    patience_ms: int = 100,
) -> Table:
    """The messages of an LTE cell's control channel (DCIs) in radio samples: what every user is granted.

    The cell, its bandwidth, ports and timing are found by themselves. Columns are those of
    `airpace decode --parquet` (docs/guide/radio.md): a row per message, `time_ms` from the first sample.

    Args:
        samples: Complex baseband samples of shape (n,), centred on the carrier.
        rate: Samples per second, in Hz.
        pci: The identity of the only cell that is wanted; without it, the strongest.
        patience_ms: A message of a user never heard of waits so long for more of its kind, 10000 at most.

    Raises:
        ValueError: A rate at which no cell can be read; samples of another shape, or some that are no numbers.

    Warns:
        UserWarning: No message was read; it says which step was the first to fail.
    """
    import numpy as np

    array = np.asarray(samples)
    if array.ndim != 1 or not np.iscomplexobj(array):
        raise ValueError(f"samples of shape {array.shape} and type {array.dtype}: give complex numbers of shape (n,)")
    rate_hz = number("rate", rate, "samples per second, as 1.92e6")
    if not 0 < rate_hz < 1e9:
        raise ValueError(f"rate={rate}: give samples per second, as 1.92e6")
    patience = whole("patience_ms", patience_ms, 0, 10_000)
    only = None if pci is None else whole("pci", pci, 0, 503, "a physical cell identity from 0 to 503")
    with np.errstate(over="ignore"):
        ready = np.ascontiguousarray(array, dtype=np.complex64)
    lost = len(ready) - int(np.count_nonzero(np.isfinite(ready)))
    if lost > 0:
        raise ValueError(
            f"samples: {lost} of {len(ready)} are NaN or infinite, in 32-bit floats; leave them out, or set them to 0"
        )
    table, broken = _airpace.decode(ready, rate_hz, pci=only, patience_ms=patience)
    if broken is not None:
        warnings.warn(broken, stacklevel=2)
    return table
