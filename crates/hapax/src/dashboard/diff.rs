//! How two bodies differ, line by line.

use maud::{Markup, html};

/// Lines of a body that are compared; beyond, the two stand side by side. The comparison takes the square of it.
const LINES_MAX: usize = 600;

/// A line of either body, or of both.
#[derive(Debug, PartialEq, Eq)]
enum Line<'a> {
    Both(&'a str),
    Old(&'a str),
    New(&'a str),
}

/// The difference, or `None` if the bodies are too long to compare.
pub fn diff(old: &str, new: &str) -> Option<Markup> {
    let lines = compare(old, new)?;
    Some(html! {
        pre class="diff" tabindex="0" {
            @for line in lines {
                @match line {
                    Line::Both(text) => span { (text) },
                    Line::Old(text) => del { (text) },
                    Line::New(text) => ins { (text) },
                }
            }
        }
    })
}

/// The longest common lines stay, the others go or come.
fn compare<'a>(old: &'a str, new: &'a str) -> Option<Vec<Line<'a>>> {
    let old: Vec<&str> = old.lines().take(LINES_MAX + 1).collect();
    let new: Vec<&str> = new.lines().take(LINES_MAX + 1).collect();
    if old.len() > LINES_MAX || new.len() > LINES_MAX {
        return None;
    }
    let mut common = vec![vec![0_u16; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i][j] = match old[i] == new[j] {
                true => common[i + 1][j + 1] + 1,
                false => common[i + 1][j].max(common[i][j + 1]),
            };
        }
    }
    let (mut i, mut j, mut lines) = (0, 0, Vec::new());
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            lines.push(Line::Both(old[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == new.len() || (i < old.len() && common[i + 1][j] >= common[i][j + 1]) {
            lines.push(Line::Old(old[i]));
            i += 1;
        } else {
            lines.push(Line::New(new[j]));
            j += 1;
        }
    }
    Some(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_both_have_stays_and_the_rest_goes_or_comes() {
        let lines = compare("a\nb\nc", "a\nx\nc\nd").expect("short");
        let want = [
            Line::Both("a"),
            Line::Old("b"),
            Line::New("x"),
            Line::Both("c"),
            Line::New("d"),
        ];
        assert_eq!(lines, want);
        assert!(compare(&"x\n".repeat(LINES_MAX + 1), "x").is_none());
    }
}
