#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| airpace_fuzz::transport::datagrams(input));
