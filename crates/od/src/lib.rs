//! libOD: a modem's key performance indicators (KPIs), read from shared memory as they come.
//!
//! Source: BISCAY §4
