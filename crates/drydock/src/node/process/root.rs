//! A container's root directory: where its mounts are, as it has no file system of its own.
//!
//! The root is a private directory, `$WINDLASS_ROOT`. Each mount path under it is a link to its volume, so that a
//! volume mounted at `/etc/app` is at `$WINDLASS_ROOT/etc/app`. Where the pod's own text (command, arguments, literal
//! values of the environment, exec probes and hooks) names a mount path, or a path below one, it is rewritten to that
//! place. Text from ConfigMaps and Secrets is left as it is.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};

use k8s_openapi::api::core::v1::Container;

use super::atomic::{DATA, make_directory};
use super::environment::Variables;
use super::expansion::expand;

/// Where a container leaves its last words unless it says otherwise.
const TERMINATION_LOG: &str = "/dev/termination-log";

/// A container's root directory.
#[derive(Clone, Debug)]
pub(super) struct Root {
    path: PathBuf,
    /// The paths that are rewritten, longest first.
    places: Vec<String>,
    termination_log: String,
}

impl Root {
    /// The root of a container at `path`; nothing is made yet.
    pub(super) fn new(path: PathBuf, container: &Container) -> Self {
        let termination_log = container.termination_message_path.clone();
        let termination_log = termination_log.unwrap_or_else(|| TERMINATION_LOG.to_owned());
        let mounts = container.volume_mounts.iter().flatten().map(|mount| mount.mount_path.as_str());
        let mut places: Vec<String> = mounts
            .chain([termination_log.as_str()])
            .map(|place| place.trim_end_matches('/').to_owned())
            .filter(|place| !place.is_empty())
            .collect();
        places.sort_by_key(|place| std::cmp::Reverse(place.len()));
        Self { path, places, termination_log }
    }

    /// Makes the directory anew, with links to the volumes, which are in `volumes`.
    pub(super) fn make(
        &self,
        container: &Container,
        volumes: &Path,
        variables: &Variables,
    ) -> io::Result<()> {
        if self.path.exists() {
            fs::remove_dir_all(&self.path)?;
        }
        make_directory(&self.place("/tmp"))?;
        let mut mounts: Vec<_> = container.volume_mounts.iter().flatten().collect();
        // Those above come before those within.
        mounts.sort_by_key(|mount| mount.mount_path.len());
        for mount in mounts {
            let expanded = |text: &String| expand(text, |name| variables.get(name).map(String::as_str));
            let part = mount.sub_path.clone().or_else(|| mount.sub_path_expr.as_ref().map(expanded));
            let part = part.filter(|part| !part.is_empty());
            let target = volumes.join(&mount.name).join(relative(part.as_deref().unwrap_or_default()));
            if !target.exists() {
                make_directory(&target)?;
            }
            let place = self.place(&mount.mount_path);
            if let Some(parent) = place.parent() {
                make_directory(parent)?;
            }
            match fs::symlink_metadata(&place) {
                Ok(known) if known.is_dir() => fs::remove_dir_all(&place)?,
                Ok(_) => fs::remove_file(&place)?,
                Err(_) => {}
            }
            // A part of a volume stays as it was when the container started, whatever the volume shows later.
            let fixed = volumes.join(&mount.name).join(DATA).exists() && target.is_file();
            if part.is_some() && fixed {
                fs::hard_link(fs::canonicalize(&target)?, place)?;
            } else {
                symlink(target, place)?;
            }
        }
        let last_words = self.termination_log();
        if let Some(parent) = last_words.parent() {
            make_directory(parent)?;
        }
        fs::write(last_words, "")
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Where a path of the container is on this machine.
    pub(super) fn place(&self, path: &str) -> PathBuf {
        self.path.join(relative(path))
    }

    /// The file of the container's last words.
    pub(super) fn termination_log(&self) -> PathBuf {
        self.place(&self.termination_log)
    }

    /// Text in which the container's own paths are those of this machine.
    pub(super) fn rewrite(&self, text: &str) -> String {
        let is_word = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '.' | '-');
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        let mut before = None;
        while let Some(letter) = rest.chars().next() {
            let starts = letter == '/' && before.is_none_or(|letter: char| !is_word(letter) && letter != '/');
            let place = self.places.iter().filter(|_| starts).find(|place| {
                let after = rest.strip_prefix(place.as_str());
                after.is_some_and(|after| after.chars().next().is_none_or(|letter| !is_word(letter)))
            });
            let taken = match place {
                Some(place) => {
                    out.push_str(&self.place(place).to_string_lossy());
                    place.len()
                }
                None => {
                    out.push(letter);
                    letter.len_utf8()
                }
            };
            before = rest[..taken].chars().next_back();
            rest = &rest[taken..];
        }
        out
    }
}

/// The part of a path that is below the root, whatever it says.
fn relative(path: &str) -> PathBuf {
    Path::new(path).components().filter(|part| matches!(part, Component::Normal(_))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_paths_are_rewritten() {
        let root = Root {
            path: "/r".into(),
            places: vec!["/etc/app/deep".into(), "/etc/app".into(), "/data".into()],
            termination_log: TERMINATION_LOG.into(),
        };
        for (text, wanted) in [
            ("/etc/app", "/r/etc/app"),
            ("--config=/etc/app/a.yaml", "--config=/r/etc/app/a.yaml"),
            ("cat /etc/app/deep/x '/data'", "cat /r/etc/app/deep/x '/r/data'"),
            ("/etc/application /database x/data /usr/data", "/etc/application /database x/data /usr/data"),
            ("http://host/data", "http://host/data"),
            ("a:/data:/etc/app", "a:/r/data:/r/etc/app"),
            ("é/data é", "é/data é"),
        ] {
            assert_eq!(root.rewrite(text), wanted, "{text}");
        }
        assert_eq!(root.rewrite(&root.rewrite("/data/x")), "/r/data/x");
        assert_eq!(root.place("/../../etc"), Path::new("/r/etc"));
    }
}
