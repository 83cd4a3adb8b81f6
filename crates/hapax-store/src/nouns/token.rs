//! API tokens: who may do what.

use std::sync::Arc;

use hapax_ledger::id::TokenId;
use hapax_ledger::time::Time;

use super::audit::Before;

/// What a token may do. Each includes the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Look.
    Viewer,
    /// Decide about events and effects.
    Operator,
    /// Everything.
    Admin,
}

impl Role {
    /// Every role.
    pub const ALL: [Role; 3] = [Role::Viewer, Role::Operator, Role::Admin];

    /// The word users see.
    pub const fn word(self) -> &'static str {
        match self {
            Role::Viewer => "viewer",
            Role::Operator => "operator",
            Role::Admin => "admin",
        }
    }

    /// The role with this word.
    pub fn from_word(word: &str) -> Option<Role> {
        Role::ALL.into_iter().find(|role| role.word() == word)
    }

    /// The number stores keep.
    pub const fn code(self) -> u8 {
        match self {
            Role::Viewer => 0,
            Role::Operator => 1,
            Role::Admin => 2,
        }
    }

    /// The role with this number.
    pub fn from_code(code: u8) -> Option<Role> {
        Role::ALL.into_iter().find(|role| role.code() == code)
    }
}

/// A token. Its secret is known to whoever made it, and to nobody else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Its id.
    pub id: TokenId,
    /// What people call it; the actor in all that is decided with it. Unique among tokens that are not revoked.
    pub name: Arc<str>,
    /// What it may do.
    pub role: Role,
    /// The one app that it is for; `None`: all.
    pub app: Option<String>,
    /// The hash of its secret.
    pub hash: [u8; 32],
    /// When it was made.
    pub created_at: Time,
    /// From then on it does not count.
    pub expires_at: Option<Time>,
    /// When it was last used, give or take a minute.
    pub last_used_at: Option<Time>,
    /// Since when it does not count.
    pub revoked_at: Option<Time>,
}

impl Token {
    /// Does it count at this time? Expired means expired at once (I2).
    pub fn counts(&self, now: Time) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|until| now < until)
    }
}

/// What became of a change of the catalogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changed {
    /// It is done.
    Done,
    /// A request with the same key came before. What is kept to be said again is the `answer` that came with it.
    Before(Before),
    /// There is none of that id, or nothing to change about it.
    NotFound,
    /// Another one has this name.
    NameTaken,
}

#[cfg(test)]
mod tests {
    use super::*;
    use hapax_ledger::id::RawId;

    const AT: Time = Time::from_secs(1_000);

    fn token() -> Token {
        Token {
            id: TokenId(RawId::new(AT, 0, 1)),
            name: "ada".into(),
            role: Role::Operator,
            app: None,
            hash: [7; 32],
            created_at: AT,
            expires_at: None,
            last_used_at: None,
            revoked_at: None,
        }
    }

    #[test]
    fn what_is_expired_or_revoked_does_not_count() {
        let until = Time::from_secs(2_000);
        let expires = Token {
            expires_at: Some(until),
            ..token()
        };
        let revoked = Token {
            revoked_at: Some(AT),
            ..token()
        };
        assert!(token().counts(AT));
        assert!(expires.counts(AT));
        assert!(!expires.counts(until), "expired means expired at once");
        assert!(!revoked.counts(AT));
    }
}
