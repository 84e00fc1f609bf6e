//! The program's webhooks over sockets: an invalid Monocle is refused at the door, and defaults are there at once.
//!
//! On the drydock; and where WINDLASS_E2E_KUBECONFIG names a cluster whose API server reaches this machine's loopback, on
//! that: `WINDLASS_E2E_KUBECONFIG=FILE cargo test -p windlass-cli --test webhooks`.

// A test that cannot go on should say so and stop.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// A process with the operator, ended with the test.
struct Running {
    process: Child,
    folder: PathBuf,
    kubeconfig: PathBuf,
}

impl Running {
    fn start() -> Self {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("webhooks");
        std::fs::create_dir_all(&folder).unwrap();
        let cluster = std::env::var_os("WINDLASS_E2E_KUBECONFIG").map(PathBuf::from);
        let kubeconfig = cluster.clone().unwrap_or_else(|| folder.join("kubeconfig"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
        match cluster {
            Some(_) => command.args(["run", "monocle", "--install-crds"]),
            None => {
                let _ = std::fs::remove_file(&kubeconfig);
                command.args(["up", "--operators", "monocle", "--no-samples"])
            }
        };
        let process = command
            .args(["--webhooks", "--webhooks-listen", "127.0.0.1:0", "--kubeconfig"])
            .arg(&kubeconfig)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Self { process, folder, kubeconfig }
    }

    fn windlass(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
        command.args(arguments).arg("--kubeconfig").arg(&self.kubeconfig).output().unwrap()
    }

    /// Waits until the output of a command has a text.
    fn until(&self, arguments: &[&str], text: &str) {
        let mut seen = String::new();
        for _ in 0..300 {
            let output = self.windlass(arguments);
            seen = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
            if seen.contains(text) {
                return;
            }
            pause();
        }
        panic!("waited in vain for {text} in windlass {}: {seen}", arguments.join(" "));
    }

    fn apply(&self, name: &str, spec: &str) -> Output {
        let file = self.folder.join("monocle.yaml");
        let monocle = format!(
            "apiVersion: monocle.monocle.change-metrics.io/v1alpha1\nkind: Monocle\nmetadata: {{name: {name}}}\nspec: {spec}\n"
        );
        std::fs::write(&file, monocle).unwrap();
        self.windlass(&["apply", "-f", &file.to_string_lossy()])
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The process under test runs in real time; there is nothing but to ask it again.
#[allow(clippy::disallowed_methods)]
fn pause() {
    std::thread::sleep(Duration::from_millis(100));
}

#[test]
fn an_invalid_monocle_is_refused_and_defaults_are_there_at_once() {
    let running = Running::start();
    running.until(&["get", "validatingwebhookconfiguration"], "monocle-operator");
    running.until(&["get", "mutatingwebhookconfiguration"], "monocle-operator");
    let long = "m".repeat(60);
    // An API server takes a moment to see a new configuration.
    let mut refusal = String::new();
    for _ in 0..100 {
        let refused = running.apply(&long, "{}");
        refusal = String::from_utf8_lossy(&refused.stderr).into_owned();
        if !refused.status.success() {
            break;
        }
        running.windlass(&["delete", "monocle", &long]);
        pause();
    }
    let said = "metadata.name: is too long for the names of its children; use at most 38 letters";
    assert!(refusal.contains(said), "{refusal}");

    let applied = running.apply("walk", "{}");
    assert!(applied.status.success(), "{}", String::from_utf8_lossy(&applied.stderr));
    let shown = running.windlass(&["get", "monocle", "walk", "-o", "yaml"]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("publicURL: http://localhost:8090"), "{shown}");
    running.windlass(&["delete", "monocle", "walk"]);
}
