//! Every example runs to its end: each asserts what it shows.

// An example stops where a program would report.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "../conditions.rs"]
mod conditions;
#[path = "../day_2.rs"]
mod day_2;
#[path = "../drift.rs"]
mod drift;
#[path = "../external.rs"]
mod external;
#[path = "../faults.rs"]
mod faults;
#[path = "../hello.rs"]
mod hello;
#[path = "../made_once.rs"]
mod made_once;
#[path = "../nested.rs"]
mod nested;
#[path = "../order.rs"]
mod order;
#[path = "../port.rs"]
mod port;
#[path = "../preview.rs"]
mod preview;
#[path = "../pruning.rs"]
mod pruning;
#[path = "../replicas.rs"]
mod replicas;
#[path = "../selectors.rs"]
mod selectors;
#[path = "../time.rs"]
mod time;
#[path = "../validity.rs"]
mod validity;
#[path = "../webhooks.rs"]
mod webhooks;

#[test]
fn conditions() {
    conditions::main();
}

#[test]
fn day_2() {
    day_2::main();
}

#[test]
fn drift() {
    drift::main();
}

#[test]
fn external() {
    external::main();
}

#[test]
fn faults() {
    faults::main();
}

#[test]
fn hello() {
    hello::main();
}

#[test]
fn made_once() {
    made_once::main();
}

#[test]
fn nested() {
    nested::main();
}

#[test]
fn order() {
    order::main();
}

#[test]
fn port() {
    port::main();
}

#[test]
fn preview() {
    preview::main();
}

#[test]
fn pruning() {
    pruning::main();
}

#[test]
fn replicas() {
    replicas::main();
}

#[test]
fn selectors() {
    selectors::main();
}

#[test]
fn time() {
    time::main();
}

#[test]
fn validity() {
    validity::main();
}

#[test]
fn webhooks() {
    webhooks::main();
}
