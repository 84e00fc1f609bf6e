//! Bundles and catalogs on disk.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use windlass::olm::File;

/// What shows that a directory is a bundle.
const MARK: &str = "metadata/annotations.yaml";
/// The directories of a bundle that belong to whoever writes it.
const OWN: [&str; 2] = ["manifests", "metadata"];

/// All files below a directory, by their paths with `/`.
pub(super) fn read(directory: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut files = BTreeMap::new();
    collect(directory, "", &mut files)?;
    Ok(files)
}

fn collect(directory: &Path, prefix: &str, files: &mut BTreeMap<String, Vec<u8>>) -> Result<()> {
    let failed = || format!("failed to read {}", directory.display());
    for entry in fs::read_dir(directory).with_context(failed)? {
        let path = entry.with_context(failed)?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
            bail!("{} has a name that is no text", path.display());
        };
        let name = format!("{prefix}{name}");
        if path.is_dir() {
            collect(&path, &format!("{name}/"), files)?;
        } else {
            let content = fs::read(&path).with_context(|| format!("failed to read {}", path.display()))?;
            files.insert(name, content);
        }
    }
    Ok(())
}

/// Writes a bundle. One that is there already is replaced, whatever else is there is not touched.
pub(super) fn write_bundle(directory: &Path, files: &BTreeMap<String, File>) -> Result<()> {
    let empty = fs::read_dir(directory).map_or(true, |mut entries| entries.next().is_none());
    if !empty && !directory.join(MARK).is_file() {
        bail!(
            "{} holds something that is no bundle: choose another directory with --output",
            directory.display()
        );
    }
    for own in OWN.map(|own| directory.join(own)).iter().filter(|own| own.exists()) {
        fs::remove_dir_all(own).with_context(|| format!("failed to replace {}", own.display()))?;
    }
    for (name, file) in files {
        write(&directory.join(name), &text(file)?)?;
    }
    Ok(())
}

/// Writes a file and the directories that lead to it.
pub(super) fn write(path: &Path, text: &str) -> Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).with_context(|| format!("failed to make {}", parent.display()))?;
    }
    fs::write(path, text).with_context(|| format!("failed to write {}", path.display()))
}

/// The text of a file; trees are written as YAML.
pub(super) fn text(file: &File) -> Result<String> {
    Ok(match file {
        File::Tree(tree) => format!("{}\n", serde_saphyr::to_string(tree)?.trim_end()),
        File::Text(text) => text.clone(),
    })
}
