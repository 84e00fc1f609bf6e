//! Which images are programs of this machine, and how the others behave: the options of `up` and `drydock`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde::Deserialize;
use windlass_drydock::node::{Behaviour, NodeOptions, Program};

use crate::catalog;

/// The options. Their name is also that of their group, which no other may have.
#[derive(Debug, clap::Args)]
pub(crate) struct ImageArguments {
    /// Run the pods of an image as a program of this machine; `*` stands for anything, no tag for all tags
    ///
    /// A pod all of whose images are mapped runs as processes; every other pod is simulated. For example:
    /// --image quay.io/me/operator=./target/debug/operator
    #[arg(long, value_name = "IMAGE=PROGRAM", value_parser = pair)]
    image: Vec<(String, String)>,
    /// The same from a YAML file: programs, or lists of a program and its arguments, by image
    ///
    /// An entry can also be {behaviour: B}, as --behaviour has it. Programs are relative to the file.
    #[arg(long, value_name = "FILE")]
    images: Option<PathBuf>,
    /// How the pods of an image behave: unpullable, hang, unready, crash, or exit:CODE
    #[arg(long, value_name = "IMAGE=B", value_parser = behaviour_pair)]
    behaviour: Vec<(String, Behaviour)>,
}

/// What a file says about an image.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Entry {
    Program(String),
    Words(Vec<String>),
    Behaves { behaviour: String },
}

impl ImageArguments {
    /// Tells the node. What is given by itself wins over the file, and that over the images of this project.
    pub(crate) fn apply(&self, node: &NodeOptions) -> Result<()> {
        let program = std::env::current_exe().context("failed to find this program itself")?;
        for (image, arguments) in catalog::IMAGES {
            node.images.set(image, Program::new(&program).with_arguments(arguments.iter().copied()));
        }
        if let Some(file) = &self.images {
            apply_file(file, node)
                .with_context(|| format!("failed to read images from {}", file.display()))?;
        }
        for (image, program) in &self.image {
            node.images.set(image, Program::new(program));
        }
        for (image, behaviour) in &self.behaviour {
            node.behaviours.set(image, behaviour.clone());
        }
        Ok(())
    }
}

fn apply_file(file: &Path, node: &NodeOptions) -> Result<()> {
    let entries: BTreeMap<String, Entry> = serde_saphyr::from_str(&std::fs::read_to_string(file)?)?;
    let folder = file.parent().unwrap_or_else(|| Path::new(""));
    for (image, entry) in entries {
        let words = match entry {
            Entry::Program(program) => vec![program],
            Entry::Words(words) => words,
            Entry::Behaves { behaviour } => {
                let behaviour = behaviour.parse().with_context(|| format!("image {image}"))?;
                node.behaviours.set(&image, behaviour);
                continue;
            }
        };
        let (program, arguments) =
            words.split_first().with_context(|| format!("image {image} has no program"))?;
        // A bare name is one to be found on the PATH.
        let program = if program.contains('/') { folder.join(program) } else { PathBuf::from(program) };
        node.images.set(&image, Program::new(program).with_arguments(arguments));
    }
    Ok(())
}

fn pair(text: &str) -> Result<(String, String), String> {
    // An image has no `=`; a program's path may.
    let pair = text.split_once('=').filter(|(image, value)| !image.is_empty() && !value.is_empty());
    pair.map(|(image, value)| (image.to_owned(), value.to_owned()))
        .ok_or_else(|| "it is of the form IMAGE=VALUE".to_owned())
}

fn behaviour_pair(text: &str) -> Result<(String, Behaviour), String> {
    let (image, behaviour) = pair(text)?;
    Ok((
        image,
        behaviour.parse().map_err(|error: windlass_drydock::node::UnknownBehaviour| error.to_string())?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_maps_images() {
        let folder = std::env::temp_dir().join(format!("windlass-images-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("images.yaml");
        let text = "a/b: bin/b\nc: [sh, -c, echo]\nd: {behaviour: 'exit:3'}\n";
        std::fs::write(&file, text).unwrap();
        let node = NodeOptions::default();
        apply_file(&file, &node).unwrap();
        assert_eq!(node.images.of("a/b:v1").unwrap().path, folder.join("bin/b"));
        assert_eq!(node.images.of("c").unwrap(), Program::new("sh").with_arguments(["-c", "echo"]));
        assert!(matches!(node.behaviours.of("d"), Some(Behaviour::Exit { code: 3, .. })));
        std::fs::write(&file, "d: {behaviour: odd}\n").unwrap();
        assert!(apply_file(&file, &node).is_err());
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn pairs_are_split_at_the_first_sign() {
        assert_eq!(pair("a:v1=./x=y"), Ok(("a:v1".to_owned(), "./x=y".to_owned())));
        assert!(pair("a").is_err() && pair("=b").is_err() && pair("a=").is_err());
    }
}
