//! The name of an input file, as typed.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::ops::Deref;
use std::path::Path;

/// The name of a file, which need not be UTF-8; `-` is standard input. As text it is what messages show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileName {
    typed: OsString,
    shown: String,
}

impl FileName {
    /// The same name with this at its end.
    pub fn with_end(&self, end: &str) -> Self {
        let mut typed = self.typed.clone();
        typed.push(end);
        Self::from(typed)
    }
}

impl From<OsString> for FileName {
    fn from(typed: OsString) -> Self {
        let shown = typed.to_string_lossy().into_owned();
        Self { typed, shown }
    }
}

impl From<&str> for FileName {
    fn from(name: &str) -> Self {
        Self { typed: name.into(), shown: name.to_owned() }
    }
}

impl From<&FileName> for String {
    fn from(name: &FileName) -> Self {
        name.shown.clone()
    }
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl Deref for FileName {
    type Target = str;

    fn deref(&self) -> &str {
        &self.shown
    }
}

impl AsRef<Path> for FileName {
    fn as_ref(&self) -> &Path {
        self.typed.as_ref()
    }
}

impl AsRef<OsStr> for FileName {
    fn as_ref(&self) -> &OsStr {
        &self.typed
    }
}
