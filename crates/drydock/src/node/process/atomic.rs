//! Directories whose files all change at once, as the kubelet writes those of Secrets and ConfigMaps.
//!
//! The files are in a directory of their own, `..data` is a symbolic link to it, and each name is one through
//! `..data`. A new set of files is a new directory and one rename of `..data`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, symlink};
use std::path::{Component, Path, PathBuf};

/// The link to the files as they are.
pub(super) const DATA: &str = "..data";

/// The files of a volume by their relative paths.
pub(super) type Payload = BTreeMap<String, File>;

/// One file.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct File {
    pub(super) content: Vec<u8>,
    pub(super) mode: u32,
}

/// A directory that is written so.
#[derive(Debug, Default)]
pub(super) struct Directory {
    path: PathBuf,
    /// The directory behind `..data`.
    current: Option<PathBuf>,
    written: u64,
}

impl Directory {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, current: None, written: 0 }
    }

    /// Makes the directory hold exactly these files.
    pub(super) fn write(&mut self, payload: &Payload) -> io::Result<()> {
        self.written += 1;
        let name = format!("..{}", self.written);
        let fresh = self.path.join(&name);
        make_directory(&fresh)?;
        for (path, file) in payload {
            write_file(&fresh, path, file)?;
        }
        let next = self.path.join("..data_tmp");
        symlink(&name, &next)?;
        fs::rename(&next, self.path.join(DATA))?;
        self.link(payload)?;
        if let Some(old) = self.current.replace(fresh) {
            fs::remove_dir_all(old)?;
        }
        Ok(())
    }

    /// Brings the names that are seen in line with the files there are.
    fn link(&self, payload: &Payload) -> io::Result<()> {
        let wanted: BTreeSet<&str> = payload.keys().filter_map(|path| path.split('/').next()).collect();
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if !name.starts_with("..") && !wanted.contains(&*name) {
                fs::remove_file(entry.path())?;
            }
        }
        for name in wanted {
            let link = self.path.join(name);
            if fs::symlink_metadata(&link).is_err() {
                symlink(Path::new(DATA).join(name), link)?;
            }
        }
        Ok(())
    }
}

/// Makes a directory, and those above it, that only its owner can enter.
pub(super) fn make_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

fn write_file(directory: &Path, path: &str, file: &File) -> io::Result<()> {
    let inside = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
    if path.is_empty() || !inside {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{path:?} is not within the volume"),
        ));
    }
    let place = directory.join(path);
    if let Some(parent) = place.parent() {
        make_directory(parent)?;
    }
    // The directory is the owner's alone, and so are the files.
    let mode = file.mode & 0o700;
    OpenOptions::new().write(true).create_new(true).mode(mode).open(place)?.write_all(&file.content)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn payload(files: &[(&str, &str)]) -> Payload {
        let file = |content: &str| File { content: content.into(), mode: 0o644 };
        files.iter().map(|(path, content)| ((*path).to_owned(), file(content))).collect()
    }

    #[test]
    fn files_change_together() {
        let place = std::env::temp_dir().join(format!("windlass-atomic-{}", std::process::id()));
        make_directory(&place).unwrap();
        let mut directory = Directory::new(place.clone());
        directory.write(&payload(&[("a", "1"), ("deep/b", "2")])).unwrap();
        assert_eq!(fs::read_to_string(place.join("deep/b")).unwrap(), "2");
        let mode = fs::metadata(place.join("a")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let held = fs::canonicalize(place.join(DATA)).unwrap();
        directory.write(&payload(&[("a", "3"), ("c", "4")])).unwrap();
        assert_eq!(fs::read_to_string(place.join("a")).unwrap(), "3");
        assert!(!place.join("deep").exists() && !held.exists());
        assert!(directory.write(&payload(&[("../x", "")])).is_err());
        fs::remove_dir_all(place).unwrap();
    }
}
