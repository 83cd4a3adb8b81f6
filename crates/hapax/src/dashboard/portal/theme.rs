//! Whose portal it is: a name, a logo, and a colour that stays readable in light and in dark.
//!
//! The colour becomes a style sheet that is served like any other, so that no page has a style of its own and the CSP stays as strict as
//! it is. Its URL carries a hash of it.

use std::sync::Arc;

use bytes::Bytes;
use hapax_ledger::key::BodyHash;

use crate::config::PortalConfig;

/// Bytes of a hash that are enough to tell versions of a file apart.
const MARK_BYTES: usize = 8;
/// What letters need to be read by everybody (WCAG 2.2, 1.4.3).
const CONTRAST_MIN: f64 = 4.5;
/// The darkest ground of light pages that letters in the colour stand on, and the lightest of dark ones.
const LIGHT: [u8; 3] = [0xf3, 0xf1, 0xec];
const DARK: [u8; 3] = [0x21, 0x27, 0x26];
const WHITE: [u8; 3] = [0xff; 3];
const BLACK: [u8; 3] = [0x00; 3];
/// Of this many parts towards black or white, a shade is taken that can be read.
const SHADES: u16 = 20;

/// Layout that only the portal has.
const LAYOUT: &str = include_str!("../assets/portal.css");
/// What reads the key out of a magic link.
const SCRIPT: &[u8] = include_bytes!("../assets/portal.js");

/// A file that pages of the portal load.
#[derive(Clone, Debug)]
pub struct Served {
    /// Where it is.
    pub path: String,
    /// Its content type.
    pub kind: &'static str,
    /// Its bytes.
    pub bytes: Bytes,
}

/// What the portal looks like.
#[derive(Clone, Debug)]
pub struct Theme {
    /// Whose it is.
    pub name: Arc<str>,
    /// Its style sheet, beside the one of all pages.
    pub style: Served,
    /// Its script, which only the way in loads.
    pub script: Served,
    /// Its picture.
    pub logo: Option<Served>,
}

impl Theme {
    /// As the config has it.
    pub fn new(config: &PortalConfig) -> Theme {
        let style = format!("{LAYOUT}{}", config.colour.map(sheet).unwrap_or_default());
        let logo = config.logo.as_ref();
        Theme {
            name: config.name.clone(),
            style: served("portal", "css", "text/css; charset=utf-8", style.into()),
            script: served(
                "portal",
                "js",
                "text/javascript; charset=utf-8",
                Bytes::from_static(SCRIPT),
            ),
            logo: logo.map(|logo| served("logo", logo.ending, logo.kind, logo.bytes.clone())),
        }
    }

    /// All files.
    pub fn files(&self) -> impl Iterator<Item = &Served> {
        [&self.style, &self.script].into_iter().chain(&self.logo)
    }
}

fn served(name: &str, ending: &str, kind: &'static str, bytes: Bytes) -> Served {
    let mark = hex::encode(&BodyHash::of(&bytes).bytes()[..MARK_BYTES]);
    Served {
        path: format!("/portal/assets/{name}.{mark}.{ending}"),
        kind,
        bytes,
    }
}

/// The colour by role. What is written on it, and what is written in it, can be read.
fn sheet(brand: [u8; 3]) -> String {
    let light = readable(brand, LIGHT, BLACK);
    let dark = readable(brand, DARK, WHITE);
    let rule = |accent: [u8; 3], ground: &str| {
        let (ink, accent) = (text(ink_on(accent)), text(accent));
        format!(
            ":root {{ --accent: {accent}; --accent-ink: {ink}; --accent-wash: color-mix(in srgb, {accent} 13%, {ground}); }}"
        )
    };
    format!(
        ":root {{ --brand: {}; }}\n{}\n@media (prefers-color-scheme: dark) {{ {} }}\n",
        text(brand),
        rule(light, "#ffffff"),
        rule(dark, "#1b201f")
    )
}

/// The nearest shade of a colour, towards black or white, that can be read on a ground.
fn readable(colour: [u8; 3], ground: [u8; 3], towards: [u8; 3]) -> [u8; 3] {
    let mut shades = (0..=SHADES).map(|parts| mixed(colour, towards, parts));
    let found = shades.find(|shade| contrast(*shade, ground) >= CONTRAST_MIN);
    found.unwrap_or(towards)
}

fn mixed(from: [u8; 3], to: [u8; 3], parts: u16) -> [u8; 3] {
    let mix = |index: usize| {
        let (from, to) = (u16::from(from[index]), u16::from(to[index]));
        let mixed = (from * (SHADES - parts) + to * parts) / SHADES;
        u8::try_from(mixed).unwrap_or(u8::MAX)
    };
    [mix(0), mix(1), mix(2)]
}

fn ink_on(ground: [u8; 3]) -> [u8; 3] {
    match contrast(WHITE, ground) >= contrast(BLACK, ground) {
        true => WHITE,
        false => BLACK,
    }
}

/// How far two colours are apart, as WCAG counts it: 1 to 21.
fn contrast(one: [u8; 3], other: [u8; 3]) -> f64 {
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

fn luminance(colour: [u8; 3]) -> f64 {
    let linear = |part: u8| {
        let part = f64::from(part) / 255.0;
        match part <= 0.04045 {
            true => part / 12.92,
            false => ((part + 0.055) / 1.055).powf(2.4),
        }
    };
    let [red, green, blue] = colour.map(linear);
    0.2126 * red + 0.7152 * green + 0.0722 * blue
}

fn text(colour: [u8; 3]) -> String {
    format!("#{}", hex::encode(colour))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_colour_can_be_read_in_light_and_dark() {
        for brand in [
            BLACK,
            WHITE,
            [0xff, 0xe6, 0x00],
            [0x1f, 0x6b, 0x64],
            [0x80; 3],
        ] {
            for (ground, towards) in [(LIGHT, BLACK), (DARK, WHITE)] {
                let shade = readable(brand, ground, towards);
                assert!(
                    contrast(shade, ground) >= CONTRAST_MIN,
                    "{brand:?} {shade:?}"
                );
                assert!(contrast(ink_on(shade), shade) >= CONTRAST_MIN, "{shade:?}");
            }
        }
    }

    #[test]
    fn a_colour_that_can_be_read_stays_as_it_is() {
        assert_eq!(
            readable([0x1f, 0x6b, 0x64], LIGHT, BLACK),
            [0x1f, 0x6b, 0x64]
        );
        let sheet = sheet([0x1f, 0x6b, 0x64]);
        assert!(
            sheet.contains("--accent: #1f6b64; --accent-ink: #ffffff"),
            "{sheet}"
        );
    }

    #[test]
    fn another_look_has_another_address() {
        let plain = Theme::new(&PortalConfig::default());
        let coloured = Theme::new(&PortalConfig {
            colour: Some(WHITE),
            ..PortalConfig::default()
        });
        assert_ne!(plain.style.path, coloured.style.path);
        assert_eq!(plain.files().count(), 2);
    }
}
