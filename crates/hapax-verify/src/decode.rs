//! Decoding of signatures: strict, to a length known beforehand, on the stack.

use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use base64::{Engine, alphabet};
use serde::Deserialize;

/// The longest MAC there is (SHA-512).
pub(crate) const TAG_BYTES_MAX: usize = 64;

/// The longest public-key signature that is looked at: RSA with 8192 bits.
pub(crate) const SIGNATURE_BYTES_MAX: usize = 1024;

// Providers disagree about padding, so both forms are read; what is left over after the last whole byte must be zero.
const INDIFFERENT: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, INDIFFERENT);
const URL_SAFE: GeneralPurpose =
    GeneralPurpose::new(&alphabet::URL_SAFE, INDIFFERENT.with_encode_padding(false));

/// How bytes are written as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum Encoding {
    /// Base 16, in either case.
    #[default]
    Hex,
    /// Base 64 with `+` and `/`.
    Base64,
    /// Base 64 with `-` and `_`, without padding.
    Base64Url,
}

impl Encoding {
    /// All of them, for the search for a likely cause.
    pub(crate) const ALL: [Encoding; 3] = [Encoding::Hex, Encoding::Base64, Encoding::Base64Url];

    /// The word used in configuration.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Encoding::Hex => "hex",
            Encoding::Base64 => "base64",
            Encoding::Base64Url => "base64url",
        }
    }

    pub(crate) fn encode(self, bytes: &[u8]) -> String {
        match self {
            Encoding::Hex => hex::encode(bytes),
            Encoding::Base64 => STANDARD.encode(bytes),
            Encoding::Base64Url => URL_SAFE.encode(bytes),
        }
    }

    /// Decodes exactly `tag.len()` bytes, or refuses.
    pub(crate) fn decode_exact(self, text: &[u8], tag: &mut [u8]) -> Option<()> {
        // Base64 decodes in groups of four: room for a whole group more than the longest tag.
        let mut buffer = [0u8; TAG_BYTES_MAX + 4];
        debug_assert!(tag.len() <= TAG_BYTES_MAX, "tags are at most 64 bytes");
        let engine = match self {
            Encoding::Hex => return hex::decode_to_slice(text, tag).ok(),
            Encoding::Base64 => &STANDARD,
            Encoding::Base64Url => &URL_SAFE,
        };
        let length = engine.decode_slice(text, &mut buffer).ok()?;
        let decoded = buffer.get(..length).filter(|d| d.len() == tag.len())?;
        tag.copy_from_slice(decoded);
        Some(())
    }

    /// Decodes text of any length up to a bound; for keys and public-key signatures.
    pub(crate) fn decode_vec(self, text: &[u8]) -> Option<Vec<u8>> {
        if text.len() > SIGNATURE_BYTES_MAX * 2 {
            return None;
        }
        match self {
            Encoding::Hex => hex::decode(text).ok(),
            Encoding::Base64 => STANDARD.decode(text).ok(),
            Encoding::Base64Url => URL_SAFE.decode(text).ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_only_the_exact_length() {
        for encoding in Encoding::ALL {
            let text = encoding.encode(&[7; 32]);
            let mut tag = [0; 32];
            assert!(encoding.decode_exact(text.as_bytes(), &mut tag).is_some());
            assert_eq!(tag, [7; 32]);
            let mut shorter = [0; 31];
            assert!(
                encoding
                    .decode_exact(text.as_bytes(), &mut shorter)
                    .is_none()
            );
            let mut longer = [0; 33];
            assert!(
                encoding
                    .decode_exact(text.as_bytes(), &mut longer)
                    .is_none()
            );
            assert!(encoding.decode_exact(b"", &mut tag).is_none());
        }
    }

    #[test]
    fn refuses_what_is_not_the_encoding() {
        let mut tag = [0; 3];
        assert!(Encoding::Hex.decode_exact(b"zz0000", &mut tag).is_none());
        assert!(Encoding::Base64.decode_exact(b"_-__", &mut tag).is_none());
        assert!(
            Encoding::Base64Url
                .decode_exact(b"+/++", &mut tag)
                .is_none()
        );
        // Base64 whose unused bits are not zero is a second spelling of the same bytes.
        let mut two = [0; 2];
        assert!(Encoding::Base64.decode_exact(b"AAF=", &mut two).is_none());
    }
}
