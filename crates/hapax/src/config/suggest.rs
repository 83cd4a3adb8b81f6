//! "Did you mean": the nearest of a list of names.

/// How alike two names must be, from 0 to 1. Below this, a suggestion is a guess that misleads.
const LIKENESS_MIN: f64 = 0.75;

/// The name that `wrong` is most likely meant to be.
pub(crate) fn nearest<'n>(
    wrong: &str,
    names: impl IntoIterator<Item = &'n str>,
) -> Option<&'n str> {
    let wrong = wrong.to_lowercase();
    names
        .into_iter()
        .map(|name| (strsim::jaro_winkler(&wrong, &name.to_lowercase()), name))
        .filter(|(likeness, _)| *likeness >= LIKENESS_MIN)
        .max_by(|left, right| left.0.total_cmp(&right.0))
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn finds_slips_of_the_finger_and_nothing_else() {
        let names = ["listen", "store", "public_url", "source", "stripe"];
        for (wrong, want) in [
            ("lisen", Some("listen")),
            ("Listen", Some("listen")),
            ("sources", Some("source")),
            ("publicurl", Some("public_url")),
            ("strpie", Some("stripe")),
            ("zebra", None),
            ("", None),
        ] {
            assert_eq!(nearest(wrong, names), want, "{wrong}");
        }
    }
}
