"""Decoder of the control channel of an LTE cell, from radio samples."""

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
    """Decodes the control channel of an LTE cell in radio samples: the DCI messages with the grants of every user.

    The decoder finds the cell, its bandwidth, ports and timing. The columns are those of `airpace decode --parquet`
    (docs/guide/radio.md), with a row per message and `time_ms` from the first sample.

    Args:
        samples: Complex baseband samples of shape (n,), centred on the carrier.
        rate: Samples per second, in Hz.
        pci: Physical cell identity of the cell; default: the strongest cell.
        patience_ms: Maximum time for which a message of an unknown user waits for more messages of the same kind,
            0 to 10000.

    Raises:
        ValueError: A rate at which no cell can be decoded; samples of another shape, or with NaN or infinity.

    Warns:
        UserWarning: No message was decoded. The warning names the first decoding stage that failed.
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
