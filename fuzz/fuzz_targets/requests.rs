//! See `crates/drydock/tests/fuzz/target.rs`.
#![no_main]

#[path = "../../crates/drydock/tests/fuzz/target.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| target::request(bytes));
