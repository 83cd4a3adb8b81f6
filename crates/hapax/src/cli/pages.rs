//! The pages of the error codes, as they stand in `docs/errors/`. A test keeps this list and the folder the same.

/// A page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Page {
    /// The code.
    pub(super) code: &'static str,
    /// The page, in Markdown.
    pub(super) text: &'static str,
}

impl Page {
    /// What happened, in one line.
    pub(super) fn title(&self) -> &'static str {
        let first = self.text.lines().next().unwrap_or_default();
        first.split_once(": ").map_or(first, |(_, title)| title)
    }
}

macro_rules! pages {
    ($($code:literal)+) => {
        &[$(Page {
            code: $code,
            text: include_str!(concat!("../../../../docs/errors/", $code, ".md")),
        }),+]
    };
}

const PAGES: &[Page] = pages! {
    // The config.
    "H0101" "H0102" "H0103" "H0104" "H0105" "H0106" "H0107" "H0108" "H0109" "H0110" "H0111" "H0112" "H0113" "H0114"
    "H0115" "H0116" "H0117" "H0118" "H0119" "H0120" "H0121" "H0122" "H0123" "H0124" "H0125" "H0126" "H0127" "H0128"
    "H0129" "H0130" "H0131" "H0132" "H0133" "H0134" "H0135" "H0136" "H0140" "H0141" "H0142" "H0143" "H0150" "H0151" "H0152" "H0153"
    "H0154" "H0155" "H0156"
    // The inbox.
    "H0201" "H0202" "H0203" "H0204" "H0205" "H0206" "H0207" "H0208" "H0210" "H0211" "H0212" "H0220" "H0221"
    "H0222"
    // The API.
    "H0301" "H0302" "H0303" "H0304" "H0305" "H0306" "H0307" "H0308" "H0310" "H0311" "H0312" "H0313" "H0314" "H0315"
    "H0316" "H0317" "H0318" "H0319" "H0320" "H0321" "H0322" "H0323" "H0324" "H0325"
    "H0326" "H0327" "H0328" "H0329" "H0330" "H0331" "H0332" "H0333" "H0334" "H0340" "H0341" "H0342" "H0343" "H0344"
    "H0345" "H0346" "H0347"
    // The command line.
    "H0401" "H0402" "H0403" "H0404" "H0405" "H0406" "H0407" "H0408" "H0409" "H0410" "H0411" "H0412" "H0413" "H0414"
    "H0415" "H0416" "H0417"
    // Alerts.
    "H0501" "H0502" "H0503" "H0504" "H0505" "H0506" "H0507" "H0508"
};

/// All pages, by code.
pub(super) fn all() -> &'static [Page] {
    PAGES
}

/// The page of a code.
pub(super) fn find(code: &str) -> Option<&'static Page> {
    PAGES.iter().find(|page| page.code == code)
}
