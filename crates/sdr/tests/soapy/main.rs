//! Tests of live radio through SoapySDR, with a driver that plays a file and simulates the failures of radios.

mod module;
mod radio;
