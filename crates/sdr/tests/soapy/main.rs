//! Live radio through SoapySDR, with a radio that plays a file and fails as radios do.

mod module;
mod radio;
