//! Any bytes as a mechanism and a value: the result is a release that is logged once, or a typed error.
#![no_main]

#[path = "../read_and_release.rs"]
mod read_and_release;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = read_and_release::read_and_release(bytes);
});
