//! What a command prints, and how its errors read.

use std::io::{ErrorKind, Write as _};

use anyhow::{Context as _, Result};

/// Prints text. That nobody reads it to its end, as in `windlass get pod | head`, is no error.
pub(crate) fn print(text: impl AsRef<[u8]>) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_ref()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error).context("failed to print"),
        _ => Ok(()),
    }
}

/// An error with its causes in one line; what one of them has said already is not said again.
pub(crate) fn describe(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if !line.contains(&cause) {
            line = if line.is_empty() { cause } else { format!("{line}: {cause}") };
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn a_cause_that_was_named_is_not_named_again() {
        let error =
            anyhow!("no such file").context("failed to read x: no such file").context("failed to start");
        assert_eq!(describe(&error), "failed to start: failed to read x: no such file");
    }
}
