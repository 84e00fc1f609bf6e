//! The Dockerfile at the root of the repository says what is true: what it names exists, and its parts fit together.
//!
//! Whether an engine builds it is not tried here: tests need no containers.

// A test that cannot go on should say so and stop.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::Path;

/// The arguments of each instruction of this name.
fn all<'a>(text: &'a str, instruction: &str) -> Vec<Vec<&'a str>> {
    let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    lines.filter(|words| words.first() == Some(&instruction)).map(|words| words[1..].to_vec()).collect()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}

#[test]
fn the_dockerfile_builds_copies_and_starts_this_program() {
    let text = std::fs::read_to_string(root().join("Dockerfile")).unwrap();
    let stages = all(&text, "FROM");
    let [build, run] = stages.as_slice() else { panic!("two stages: {stages:?}") };
    assert_eq!(
        build[0],
        format!("rust:{}-bookworm", env!("CARGO_PKG_RUST_VERSION")),
        "the oldest Rust that does"
    );
    // bookworm is Debian 12. The user of `nonroot` has a number, which `runAsNonRoot` needs.
    assert_eq!(run[0], "gcr.io/distroless/cc-debian12:nonroot");

    let command = &all(&text, "RUN")[0];
    let package = command.iter().position(|word| *word == "--package").unwrap();
    assert_eq!(command[package + 1], env!("CARGO_PKG_NAME"));
    assert!(command.contains(&"--release") && root().join("Cargo.lock").is_file());

    let folder = all(&text, "WORKDIR")[0][0];
    let copies = all(&text, "COPY");
    let copy = copies.iter().find(|words| words[0] == format!("--from={}", build[2])).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_windlass")).file_name().unwrap().to_str().unwrap();
    assert_eq!(copy[1], format!("{folder}/target/release/{program}"));
    assert_eq!(
        all(&text, "ENTRYPOINT"),
        [[format!("[\"{}\"]", copy[2])]],
        "and the arguments are a command's"
    );
}

/// The program needs nothing of the image but the C library: whatever it is linked to is in `cc` images.
#[test]
fn the_program_needs_no_other_library() {
    let program = std::fs::read(env!("CARGO_BIN_EXE_windlass")).unwrap();
    let has = |name: &str| program.windows(name.len()).any(|part| part == name.as_bytes());
    assert!(has("libc.so.6"));
    for library in ["libssl.so", "libcrypto.so", "libz.so", "libsqlite3.so", "libstdc++.so"] {
        assert!(!has(library), "{library}");
    }
}
