//! What docs/write-an-operator.md shows is what is here, and what it says happens.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use windlass_drydock::{Drydock, Options, serve};

const GUIDE: &str = include_str!("../../../docs/write-an-operator.md");

/// The blocks of code: the words after the fence, and the lines.
fn blocks() -> Vec<(&'static str, &'static str)> {
    let parts: Vec<_> = GUIDE.split("```").collect();
    assert!(parts.len() % 2 == 1, "a block is not closed");
    parts.iter().skip(1).step_by(2).map(|block| block.split_once('\n').unwrap()).collect()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

#[test]
fn every_snippet_is_from_the_project() {
    let mut found = 0;
    for (info, snippet) in blocks() {
        let Some((_, file)) = info.split_once(' ') else { continue };
        // A project of one's own is beside the checkout, this one is in it.
        let snippet = snippet.replace("../windlass/", "../../");
        let text = std::fs::read_to_string(folder().join(file)).unwrap_or_else(|_| panic!("{file}"));
        assert!(text.contains(&snippet), "{file} does not have this:\n{snippet}");
        found += 1;
    }
    assert!(found > 10);
}

/// Whether an output is what the guide shows, where `…` stands for anything.
fn matches(shown: &str, output: &str) -> bool {
    let mut rest = output;
    for (number, part) in shown.split('…').enumerate() {
        match rest.find(part) {
            Some(0) => rest = &rest[part.len()..],
            Some(at) if number > 0 => rest = &rest[at + part.len()..],
            _ => return false,
        }
    }
    rest.is_empty() || shown.ends_with('…')
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kubectl_command_does_what_is_shown() {
    if Command::new("kubectl").arg("version").arg("--client").output().is_err() {
        eprintln!("skipped: there is no kubectl on this machine");
        return;
    }
    let drydock = Drydock::start(Options::live()).await.unwrap();
    let endpoint = serve::serve(&drydock, 0).await.unwrap();
    let kubeconfig = Path::new(env!("CARGO_TARGET_TMPDIR")).join("guide.kubeconfig");
    std::fs::write(&kubeconfig, &endpoint.kubeconfig).unwrap();
    let mut operator = Command::new(env!("CARGO_BIN_EXE_website-operator"))
        .env("KUBECONFIG", &kubeconfig)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let websites: kube::Api<kube::api::DynamicObject> = kube::Api::all_with(
        drydock.client("test"),
        &kube::core::ApiResource::erase::<website_operator::Website>(&()),
    );
    while websites.list(&Default::default()).await.is_err() {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    let run = tokio::task::spawn_blocking(move || {
        let mut commands = 0;
        for (info, block) in blocks() {
            let shown = block.split("$ ").skip(1).map(|one| one.split_once('\n').unwrap());
            for (command, expected) in shown.filter(|(command, _)| command.starts_with("kubectl")) {
                assert_eq!(info, "console");
                let mut shell = Command::new("sh");
                shell.args(["-c", command]).current_dir(folder()).env("KUBECONFIG", &kubeconfig);
                let output = shell.output().unwrap();
                let text = String::from_utf8_lossy(&output.stdout);
                let errors = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "{command}: {errors}");
                assert!(matches(expected.trim_end(), text.trim_end()), "{command} says\n{text}{errors}");
                commands += 1;
            }
        }
        commands
    });
    let commands = run.await;
    operator.kill().unwrap();
    operator.wait().unwrap();
    assert!(commands.unwrap() > 8);
}
