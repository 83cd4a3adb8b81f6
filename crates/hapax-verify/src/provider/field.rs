//! References to a field of a request, in one small language: `a.b.0.c` is a path in the JSON body (or, without dots,
//! a field of a form), `header.NAME` is a header.

use std::fmt;

use serde::Deserialize;

/// A reference to a field of a request.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct FieldRef(String);

impl FieldRef {
    /// The reference as it is written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The header's name in lower case, if the reference is to a header.
    #[must_use]
    pub fn header(&self) -> Option<&str> {
        self.0.strip_prefix("header.")
    }

    /// The path in the body, if the reference is to the body.
    #[must_use]
    pub fn path(&self) -> Option<&str> {
        match self.header() {
            Some(_) => None,
            None => Some(&self.0),
        }
    }
}

impl fmt::Display for FieldRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The text is no field reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError(String);

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is neither a path like a.b.0.c nor header.NAME",
            self.0
        )
    }
}

impl std::error::Error for FieldError {}

impl TryFrom<String> for FieldRef {
    type Error = FieldError;

    fn try_from(text: String) -> Result<FieldRef, FieldError> {
        if text.split('.').any(str::is_empty) || text == "header" {
            return Err(FieldError(text));
        }
        match text.strip_prefix("header.") {
            Some(name) => Ok(FieldRef(format!("header.{}", name.to_ascii_lowercase()))),
            None => Ok(FieldRef(text)),
        }
    }
}

impl std::str::FromStr for FieldRef {
    type Err = FieldError;

    fn from_str(text: &str) -> Result<FieldRef, FieldError> {
        FieldRef::try_from(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::FieldRef;

    #[test]
    fn reads_paths_and_headers() {
        let header: FieldRef = "header.X-GitHub-Event".parse().expect("a header");
        assert_eq!(header.header(), Some("x-github-event"));
        assert_eq!(header.path(), None);
        let path: FieldRef = "data.object.id".parse().expect("a path");
        assert_eq!(path.header(), None);
        assert_eq!(path.path(), Some("data.object.id"));
        for wrong in ["", "header", "header.", "a..b", ".a"] {
            assert!(wrong.parse::<FieldRef>().is_err(), "{wrong:?}");
        }
    }
}
