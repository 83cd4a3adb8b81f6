//! `[portal]`: what consumers see their pages under: a name, a logo, a colour.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

use super::scan::{Scan, Text};
use super::table::Table;

/// What the portal is called unless told.
const NAME_DEFAULT: &str = "Webhooks";
/// The longest name that fits the head of a page on a phone.
const NAME_CHARS_MAX: usize = 40;

/// Pictures that browsers show: how their files end, their content type, and how their bytes begin.
const PICTURES: [(&str, &str, &[u8]); 5] = [
    ("svg", "image/svg+xml", b"<"),
    ("png", "image/png", b"\x89PNG"),
    ("jpg", "image/jpeg", b"\xff\xd8\xff"),
    ("jpeg", "image/jpeg", b"\xff\xd8\xff"),
    ("webp", "image/webp", b"RIFF"),
];

/// `[portal]` as it is written.
#[derive(Debug)]
pub(super) struct RawPortal {
    name: Option<Text>,
    logo: Option<Text>,
    colour: Option<Text>,
}

/// `[portal]` as the program uses it.
#[derive(Clone, Debug)]
pub struct PortalConfig {
    /// Whose portal it is.
    pub name: Arc<str>,
    /// Their picture; served from here, so that a page loads nothing from elsewhere.
    pub logo: Option<Logo>,
    /// Their colour: red, green, blue.
    pub colour: Option<[u8; 3]>,
}

/// A picture.
#[derive(Clone, Debug)]
pub struct Logo {
    /// How its file ends.
    pub ending: &'static str,
    /// Its content type.
    pub kind: &'static str,
    /// The picture itself.
    pub bytes: Bytes,
}

impl Default for PortalConfig {
    fn default() -> PortalConfig {
        PortalConfig {
            name: NAME_DEFAULT.into(),
            logo: None,
            colour: None,
        }
    }
}

pub(super) fn read(mut table: Table<'_, '_>) -> RawPortal {
    let portal = RawPortal {
        name: table.text("name"),
        logo: table.text("logo"),
        colour: table.text("colour"),
    };
    table.finish(&[]);
    portal
}

/// Resolves it; nothing if there was an error, which is reported.
pub(super) fn resolve(scan: &Scan<'_>, raw: Option<&RawPortal>) -> Option<PortalConfig> {
    let Some(raw) = raw else {
        return Some(PortalConfig::default());
    };
    let name = match &raw.name {
        Some(text) => name(scan, text),
        None => Some(NAME_DEFAULT.into()),
    };
    let logo = raw.logo.as_ref().map(|text| logo(scan, text));
    let colour = raw.colour.as_ref().map(|text| colour(scan, text));
    Some(PortalConfig {
        name: name?,
        logo: match logo {
            Some(logo) => Some(logo?),
            None => None,
        },
        colour: match colour {
            Some(colour) => Some(colour?),
            None => None,
        },
    })
}

fn name(scan: &Scan<'_>, text: &Text) -> Option<Arc<str>> {
    let name = text.value.trim();
    let fits = (1..=NAME_CHARS_MAX).contains(&name.chars().count());
    if !fits || name.chars().any(char::is_control) {
        let wrong = format!("the portal cannot be called {}", text.shown());
        let remedy = format!("write 1 to {NAME_CHARS_MAX} characters on one line");
        scan.error("H0141", &text.at, wrong, remedy);
        return None;
    }
    Some(name.into())
}

fn colour(scan: &Scan<'_>, text: &Text) -> Option<[u8; 3]> {
    let digits = text.value.strip_prefix('#');
    let mut colour = [0; 3];
    let read = digits.and_then(|digits| hex::decode_to_slice(digits, &mut colour).ok());
    if read.is_none() {
        let wrong = format!("{} is not a colour", text.shown());
        let remedy = "write # and six hexadecimal digits, such as #1f6b64";
        scan.error("H0141", &text.at, wrong, remedy);
        return None;
    }
    Some(colour)
}

fn logo(scan: &Scan<'_>, text: &Text) -> Option<Logo> {
    let path = Path::new(&text.value);
    let ending = path.extension().and_then(|ending| ending.to_str());
    let ending = ending.unwrap_or_default().to_ascii_lowercase();
    let known = PICTURES.iter().find(|(known, ..)| *known == ending);
    let (true, Some((ending, kind, begin))) = (!text.value.contains("://"), known) else {
        let wrong = format!("{} is not the file of a picture", text.shown());
        let remedy = "write the path of an .svg, .png, .jpg or .webp file: Hapax serves it itself, so that pages load nothing from elsewhere";
        scan.error("H0142", &text.at, wrong, remedy);
        return None;
    };
    let bytes = scan.bytes(&text.value, &text.at)?;
    // Editors put a byte order mark or an empty line before the first tag.
    let shown = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    if !shown.trim_ascii_start().starts_with(begin) {
        let wrong = format!("{} does not hold what its name says", text.shown());
        scan.error("H0142", &text.at, wrong, "write the path of a picture");
        return None;
    }
    Some(Logo {
        ending,
        kind,
        bytes: bytes.into(),
    })
}
