//! `Prefer: wait=N` (RFC 7240): how long the caller would rather wait than hear that its request is still running.

use std::time::Duration;

use http::HeaderMap;

use crate::headers::PREFER;

/// How long the caller is willing to wait; zero if it does not say so. The first `wait` counts.
pub(crate) fn wait(headers: &HeaderMap) -> Duration {
    let values = headers.get_all(PREFER);
    let mut preferences = values
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    let seconds = preferences.find_map(|preference| {
        // Parameters of a preference follow a semicolon; `wait` has none that we know.
        let preference = preference.split(';').next().unwrap_or("");
        let (name, seconds) = preference.split_once('=')?;
        name.trim()
            .eq_ignore_ascii_case("wait")
            .then(|| seconds.trim().trim_matches('"').parse::<u32>().ok())
    });
    Duration::from_secs(u64::from(seconds.flatten().unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn the_first_wait_counts() {
        let table: [(&[&'static str], u64); 9] = [
            (&[], 0),
            (&["wait=10"], 10),
            (&["respond-async, WAIT = 5"], 5),
            (&["respond-async", "wait=\"7\"; x=1, wait=8"], 7),
            (&["wait"], 0),
            (&["wait=soon"], 0),
            (&["wait=-1"], 0),
            (&["return=minimal"], 0),
            (&["wait=99999999999"], 0),
        ];
        for (values, seconds) in table {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(PREFER, HeaderValue::from_static(value));
            }
            assert_eq!(wait(&headers).as_secs(), seconds, "{values:?}");
        }
    }
}
