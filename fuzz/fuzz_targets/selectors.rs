//! See `crates/machinery/tests/fuzz/targets.rs`.
#![no_main]

#[allow(dead_code)]
#[path = "../../crates/machinery/tests/fuzz/targets.rs"]
mod targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::selectors(bytes));
