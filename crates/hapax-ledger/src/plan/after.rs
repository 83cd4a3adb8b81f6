//! Checks at start that effects which wait for each other can all be carried out.

use std::collections::HashSet;

use super::EffectRule;

/// The rules' `after` lists cannot be obeyed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AfterError {
    /// Two rules share a name, so that `after` could mean either.
    #[error("two effects are called `{0}`")]
    Twice(String),
    /// An effect waits for one that does not exist.
    #[error("effect `{effect}` comes after `{after}`, and this source has no such effect")]
    Unknown {
        /// The effect that waits.
        effect: String,
        /// What it waits for.
        after: String,
    },
    /// Effects wait for each other in a circle.
    #[error("these effects wait for each other: {}", .0.join(" → "))]
    Circle(Vec<String>),
}

/// Checks the `after` lists of one source's rules.
pub fn check_after(rules: &[EffectRule]) -> Result<(), AfterError> {
    let mut names = HashSet::new();
    for rule in rules {
        if !names.insert(rule.name.as_str()) {
            return Err(AfterError::Twice(rule.name.clone()));
        }
    }
    for rule in rules {
        let stranger = rule
            .after
            .iter()
            .find(|after| !names.contains(after.as_str()));
        if let Some(after) = stranger {
            let (effect, after) = (rule.name.clone(), after.clone());
            return Err(AfterError::Unknown { effect, after });
        }
    }
    // Take away what waits for nothing, again and again; what is left waits for itself.
    let mut left: Vec<&EffectRule> = rules.iter().collect();
    loop {
        let waiting: HashSet<&str> = left.iter().map(|rule| rule.name.as_str()).collect();
        let before = left.len();
        left.retain(|rule| {
            rule.after
                .iter()
                .any(|after| waiting.contains(after.as_str()))
        });
        if left.is_empty() {
            return Ok(());
        }
        if left.len() == before {
            return Err(AfterError::Circle(circle(&left)));
        }
    }
}

/// One circle among rules that all wait for one another.
fn circle(left: &[&EffectRule]) -> Vec<String> {
    let mut path: Vec<&EffectRule> = left.first().copied().into_iter().collect();
    while let Some(last) = path.last() {
        let Some(next) = left.iter().find(|rule| last.after.contains(&rule.name)) else {
            break;
        };
        let met = path.iter().position(|rule| rule.name == next.name);
        path.push(next);
        if let Some(start) = met {
            path.drain(..start);
            break;
        }
    }
    path.iter().map(|rule| rule.name.clone()).collect()
}
