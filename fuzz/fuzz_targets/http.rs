#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some((piece, bytes)) = input.split_first() else { return };
    airpace_fuzz::http::head(bytes);
    airpace_fuzz::http::response(bytes, usize::from(*piece));
});
