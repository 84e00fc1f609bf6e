//! `windlass up` and its neighbours, as a user starts them.

// A test that cannot go on should say so and stop.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::PathBuf;
use std::process::{Command, Output};

fn windlass(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_windlass")).args(arguments).output().unwrap()
}

fn file(name: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("up");
    std::fs::create_dir_all(&folder).unwrap();
    folder.join(name).to_string_lossy().into_owned()
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn up_until_ready_ends_well() {
    let kubeconfig = file("ready.kubeconfig");
    let output = windlass(&["up", "--until-ready", "--timeout", "120s", "--kubeconfig", &kubeconfig]);
    let text = errors(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("monocle/monocle-sample: Ready") && text.contains("everything is ready"), "{text}");
    assert!(std::fs::read_to_string(&kubeconfig).unwrap().contains("server: https://127.0.0.1:"));
}

#[test]
fn up_says_what_is_not_ready_in_time() {
    let kubeconfig = file("late.kubeconfig");
    let output = windlass(&["up", "--until-ready", "--timeout", "0s", "--kubeconfig", &kubeconfig]);
    assert_eq!(output.status.code(), Some(1));
    let text = errors(&output);
    assert!(text.contains("not ready after 0ns:") && text.contains("\n  monocle/monocle-sample: "), "{text}");
}

#[test]
fn up_without_samples_has_nothing_to_wait_for() {
    let kubeconfig = file("none.kubeconfig");
    let arguments =
        ["up", "--until-ready", "--no-samples", "--operators", "monocle", "--kubeconfig", &kubeconfig];
    let output = windlass(&arguments);
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
}

#[test]
fn wrong_words_are_told_with_the_way_out() {
    let output = windlass(&["up", "--operators", "monacle", "--kubeconfig", &file("x.kubeconfig")]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        errors(&output).contains("there is no operator \"monacle\"; choose from: "),
        "{}",
        errors(&output)
    );

    let output = windlass(&["drydock", "--controllers", "*,foo", "--kubeconfig", &file("x.kubeconfig")]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        errors(&output).contains("\"foo\" is not in the list of known controllers"),
        "{}",
        errors(&output)
    );

    let output = windlass(&["get", "pods", "--kubeconfig", &file("missing.kubeconfig")]);
    assert_eq!(output.status.code(), Some(1));
    assert!(errors(&output).contains("failed to read kubeconfig"), "{}", errors(&output));
}
