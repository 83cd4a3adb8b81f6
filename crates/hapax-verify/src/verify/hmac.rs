//! Keyed hashes: one MAC per secret, compared with every candidate.

use subtle::Choice;

use super::content::Content;
use super::layout::Check;
use crate::decode::Encoding;
use crate::mac::Mac;
use crate::refusal::Refusal;
use crate::signature::Candidates;

/// The ready MAC states of a source's secrets.
pub(crate) struct MacKeys<'a> {
    pub(crate) macs: &'a [Mac],
    pub(crate) tag_bytes: usize,
}

impl Check for MacKeys<'_> {
    fn check(
        &self,
        candidates: &Candidates<'_>,
        encoding: Encoding,
        content: &Content<'_>,
    ) -> Result<u8, Refusal> {
        let decoded = candidates.decode(encoding, self.tag_bytes);
        if decoded.is_empty() {
            return Err(Refusal::MalformedSignature);
        }
        for (index, mac) in (0u8..).zip(self.macs) {
            let mut mac = mac.clone();
            content.render(&mut mac)?;
            let tag = mac.finish();
            // Every candidate is compared to the end: the time says nothing about which one came close.
            let hit = decoded.iter().fold(Choice::from(0), |hit, candidate| {
                hit | tag.matches(candidate)
            });
            if bool::from(hit) {
                return Ok(index);
            }
        }
        Err(Refusal::Mismatch)
    }
}
