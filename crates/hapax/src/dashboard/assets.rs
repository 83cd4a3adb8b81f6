//! The style sheet and the script. Their URLs carry a hash of their content, so that browsers keep them for good.

use std::sync::LazyLock;

use hapax_ledger::key::BodyHash;

/// Bytes of a hash that are enough to tell versions of a file apart.
const MARK_BYTES: usize = 8;

/// A file that pages load.
#[derive(Debug)]
pub struct Asset {
    /// Where it is.
    pub path: String,
    /// Its content type.
    pub kind: &'static str,
    /// Its bytes.
    pub bytes: &'static [u8],
}

/// The style sheet.
pub static STYLE: LazyLock<Asset> = LazyLock::new(|| {
    let bytes = include_bytes!("assets/hapax.css");
    asset("hapax", "css", "text/css; charset=utf-8", bytes)
});

/// The script.
pub static SCRIPT: LazyLock<Asset> = LazyLock::new(|| {
    let bytes = include_bytes!("assets/hapax.js");
    asset("hapax", "js", "text/javascript; charset=utf-8", bytes)
});

/// The sign in the browser's tab.
pub static ICON: LazyLock<Asset> = LazyLock::new(|| {
    let bytes = include_bytes!("assets/hapax.svg");
    asset("hapax", "svg", "image/svg+xml", bytes)
});

/// All of them.
pub fn all() -> [&'static Asset; 3] {
    [&STYLE, &SCRIPT, &ICON]
}

fn asset(name: &str, ending: &str, kind: &'static str, bytes: &'static [u8]) -> Asset {
    let mark = hex::encode(&BodyHash::of(bytes).bytes()[..MARK_BYTES]);
    Asset {
        path: format!("/assets/{name}.{mark}.{ending}"),
        kind,
        bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With a first page of at most 40 KB around them.
    const ALL_BYTES_MAX: usize = 60 * 1024;

    #[test]
    fn assets_are_small_and_named_by_their_content() {
        let sizes: usize = all().iter().map(|asset| asset.bytes.len()).sum();
        assert!(sizes <= ALL_BYTES_MAX, "{sizes} bytes");
        assert!(STYLE.path.starts_with("/assets/hapax.") && STYLE.path.ends_with(".css"));
        assert_ne!(STYLE.path, SCRIPT.path);
    }
}
