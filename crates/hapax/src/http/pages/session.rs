//! Sessions: a cookie that says which token somebody logged in with, sealed with the vault's key. Nothing is kept on the server, so
//! every node knows every session; and since the token is looked up at each request, revoking it ends its sessions.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hapax_ledger::time::{Span, Time};
use hapax_store::vault::Vault;
use http::header::COOKIE;
use http::{HeaderMap, HeaderValue};

use crate::entropy;
use crate::secrets::Safe;

/// How long somebody stays logged in: a working day.
const LENGTH: Span = Span::from_hours(12);
/// Bytes of what forms carry.
const CSRF_BYTES: usize = 16;
const HASH_BYTES: usize = 32;
const TIME_BYTES: usize = 8;

/// Which pages a session is for. One browser may have one of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Realm {
    /// The dashboard.
    Operators,
    /// The consumers' portal.
    Portal,
}

impl Realm {
    fn cookie(self, secure: bool) -> &'static str {
        match (self, secure) {
            (Realm::Operators, true) => "__Host-hapax",
            (Realm::Operators, false) => "hapax",
            (Realm::Portal, true) => "__Host-hapax-portal",
            (Realm::Portal, false) => "hapax-portal",
        }
    }
}

/// Who is logged in, as the cookie has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// The hash of their token.
    pub token: [u8; HASH_BYTES],
    /// When the session ends by itself.
    pub until: Time,
    /// What their forms carry.
    pub csrf: [u8; CSRF_BYTES],
}

/// Makes cookies and reads them.
pub struct Sessions {
    safe: Arc<Safe>,
    /// Seals where no vault key is configured: such sessions end with the process, and are this node's alone.
    own: Vault,
    secure: bool,
}

impl Sessions {
    /// Sessions of a server that is known by this URL.
    pub fn new(safe: Arc<Safe>, url: &str) -> Sessions {
        Sessions {
            safe,
            own: Vault::new(&[entropy::bytes()]).expect("one key is neither none nor too many"),
            secure: url.to_ascii_lowercase().starts_with("https://"),
        }
    }

    /// A session that begins now, and the cookie that carries it.
    pub fn begin(&self, realm: Realm, token: [u8; 32], now: Time) -> HeaderValue {
        let session = Session {
            token,
            until: now + LENGTH,
            csrf: entropy::bytes(),
        };
        let sealed = self.seal(realm, &session);
        self.cookie(realm, &sealed, LENGTH.secs_ceil())
    }

    /// The cookie that ends a session in the browser.
    pub fn end(&self, realm: Realm) -> HeaderValue {
        self.cookie(realm, "", 0)
    }

    /// Does the request carry a session, ended or not? A form of another site carries none, and must not be able to end one.
    pub fn is_shown(&self, realm: Realm, headers: &HeaderMap) -> bool {
        self.value(realm, headers).is_some()
    }

    /// The session of a request, if it is one of ours and has not ended.
    pub fn find(&self, realm: Realm, headers: &HeaderMap, now: Time) -> Option<Session> {
        let value = self.value(realm, headers)?;
        let session = self.unseal(realm, value)?;
        (now < session.until).then_some(session)
    }

    /// `Lax`, so that a link in a chat leads to an event and not to the way in; what changes something is a POST, which such a
    /// cookie does not come with from elsewhere.
    fn value<'h>(&self, realm: Realm, headers: &'h HeaderMap) -> Option<&'h str> {
        let name = realm.cookie(self.secure);
        let cookies = headers.get_all(COOKIE).iter();
        let cookies = cookies.filter_map(|value| value.to_str().ok());
        let mut pairs = cookies.flat_map(|line| line.split(';'));
        pairs.find_map(|pair| pair.trim().strip_prefix(name)?.strip_prefix('='))
    }

    fn cookie(&self, realm: Realm, value: &str, seconds: i64) -> HeaderValue {
        let name = realm.cookie(self.secure);
        let secure = if self.secure { "; Secure" } else { "" };
        let text =
            format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax; Max-Age={seconds}{secure}");
        HeaderValue::from_str(&text).expect("letters, digits and signs that headers may have")
    }

    fn seal(&self, realm: Realm, session: &Session) -> String {
        let until = session.until.micros().to_be_bytes();
        let plain = [&session.token[..], &until, &session.csrf].concat();
        let (place, draw) = (place(realm), entropy::bytes());
        let sealed = match self.safe.vault() {
            Some(vault) => vault.seal(place, draw, &plain),
            None => self.own.seal(place, draw, &plain),
        };
        URL_SAFE_NO_PAD.encode(sealed)
    }

    fn unseal(&self, realm: Realm, value: &str) -> Option<Session> {
        let sealed = URL_SAFE_NO_PAD.decode(value).ok()?;
        let plain = match self.safe.vault() {
            Some(vault) => vault.open(place(realm), &sealed),
            None => self.own.open(place(realm), &sealed),
        };
        let plain = plain.ok()?;
        let (token, rest) = plain.split_first_chunk::<HASH_BYTES>()?;
        let (until, rest) = rest.split_first_chunk::<TIME_BYTES>()?;
        Some(Session {
            token: *token,
            until: Time::from_micros(i64::from_be_bytes(*until)),
            csrf: rest.try_into().ok()?,
        })
    }
}

/// What a cookie is sealed for: one of the portal opens nothing of the dashboard's.
fn place(realm: Realm) -> &'static [u8] {
    match realm {
        Realm::Operators => b"session/operators",
        Realm::Portal => b"session/portal",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_secs(1_000);

    fn sessions(url: &str) -> Sessions {
        Sessions::new(Arc::default(), url)
    }

    fn shown(cookie: &HeaderValue) -> HeaderMap {
        let pair = cookie
            .to_str()
            .expect("text")
            .split(';')
            .next()
            .expect("a pair");
        let mut headers = HeaderMap::new();
        let line = format!("a=b; {pair}; c=d");
        headers.insert(COOKIE, line.parse().expect("a header"));
        headers
    }

    #[test]
    fn a_session_is_found_until_it_ends_and_in_its_realm_only() {
        let sessions = sessions("http://localhost");
        let headers = shown(&sessions.begin(Realm::Operators, [7; 32], NOW));
        let found = |realm, at| sessions.find(realm, &headers, at).map(|one| one.token);
        assert_eq!(found(Realm::Operators, NOW), Some([7; 32]));
        assert_eq!(found(Realm::Operators, NOW + LENGTH), None);
        assert_eq!(found(Realm::Portal, NOW), None);
        let sealed = sessions.seal(
            Realm::Operators,
            &Session {
                token: [7; 32],
                until: NOW + LENGTH,
                csrf: [1; 16],
            },
        );
        assert!(sessions.unseal(Realm::Portal, &sealed).is_none());
    }

    #[test]
    fn a_cookie_that_was_changed_or_is_another_servers_is_none() {
        let ours = sessions("http://localhost");
        let other = sessions("http://localhost");
        let cookie = other.begin(Realm::Operators, [7; 32], NOW);
        assert_eq!(ours.find(Realm::Operators, &shown(&cookie), NOW), None);
        let cookie = ours.begin(Realm::Operators, [7; 32], NOW);
        let text = cookie.to_str().expect("text");
        let changed = text
            .replacen("; Path", "A; Path", 1)
            .parse()
            .expect("a header");
        assert_eq!(ours.find(Realm::Operators, &shown(&changed), NOW), None);
    }

    #[test]
    fn behind_tls_the_cookie_is_bound_to_the_host() {
        let cookie = sessions("https://hooks.example.com").begin(Realm::Operators, [7; 32], NOW);
        let text = cookie.to_str().expect("text");
        assert!(text.starts_with("__Host-hapax="), "{text}");
        for part in ["; Path=/", "; HttpOnly", "; SameSite=Lax", "; Secure"] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
}
