//! JSON with lines and spaces as people read it, and everything else as it came: the order of fields, numbers to the last digit.

use super::json::SHOWN_BYTES_MAX;

/// JSON text, indented, as far as a page shows it. What is no JSON comes out with other spaces at most, so it is to be given JSON.
pub fn indent(json: &str) -> String {
    let mut out = String::with_capacity(json.len().min(SHOWN_BYTES_MAX) * 2);
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    let mut letters = json.chars().peekable();
    while let Some(letter) = letters.next() {
        if out.len() > SHOWN_BYTES_MAX {
            out.push('…');
            return out;
        }
        if quoted {
            out.push(letter);
            quoted = escaped || letter != '"';
            escaped = letter == '\\' && !escaped;
            continue;
        }
        match letter {
            '"' => {
                quoted = true;
                out.push(letter);
            }
            '{' | '[' => {
                while letters.next_if(char::is_ascii_whitespace).is_some() {}
                out.push(letter);
                match letters.next_if(|next| matches!(next, '}' | ']')) {
                    Some(end) => out.push(end),
                    None => {
                        depth += 1;
                        line(&mut out, depth);
                    }
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut out, depth);
                out.push(letter);
            }
            ',' => {
                out.push(letter);
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            letter if letter.is_ascii_whitespace() => {}
            letter => out.push(letter),
        }
    }
    out
}

/// Deeper than this, lines are not moved further: a payload of nothing but brackets does not become a page of spaces.
const DEPTH_MAX: usize = 32;

fn line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth.min(DEPTH_MAX)));
}

#[cfg(test)]
mod tests {
    use super::indent;

    #[test]
    fn order_and_numbers_stay_as_they_came() {
        let json = r#"{"z":1.50,"a":12345678901234567890123,"s":"a\"{,b\\","e":{},"l":[ ],"n":[1, {"x":null}]}"#;
        let shown = r#"{
  "z": 1.50,
  "a": 12345678901234567890123,
  "s": "a\"{,b\\",
  "e": {},
  "l": [],
  "n": [
    1,
    {
      "x": null
    }
  ]
}"#;
        assert_eq!(indent(json), shown);
        assert_eq!(indent(shown), shown);
    }

    #[test]
    fn a_payload_of_brackets_stays_small() {
        let deep = "[".repeat(1_000);
        assert!(indent(&deep).len() < 100_000);
    }
}
