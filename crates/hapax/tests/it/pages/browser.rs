//! As much of a browser as pages need: cookies, redirects that are looked at, forms with their hidden fields.

use crate::support::client::Answer;
use crate::support::server::Server;

/// Somebody with a browser.
pub(crate) struct Browser<'a> {
    server: &'a Server,
    cookie: Option<String>,
}

impl<'a> Browser<'a> {
    /// Somebody who is not logged in.
    pub(crate) fn new(server: &'a Server) -> Browser<'a> {
        Browser {
            server,
            cookie: None,
        }
    }

    /// Somebody who is logged in with a token.
    #[track_caller]
    pub(crate) fn logged_in(server: &'a Server, token: &str) -> Browser<'a> {
        let mut browser = Browser::new(server);
        let answer = browser.log_in(token);
        assert_eq!(answer.status, 303, "{answer:?}");
        browser
    }

    /// Sends the form of the way in.
    pub(crate) fn log_in(&mut self, token: &str) -> Answer {
        let answer = self.send(
            "/login",
            &[("token", token)],
            "sec-fetch-site: same-origin\r\n",
        );
        if let Some(cookie) = answer.header("set-cookie") {
            let pair = cookie.split(';').next().expect("a pair");
            self.cookie = Some(pair.to_owned());
        }
        answer
    }

    /// Shows this cookie from now on.
    pub(crate) fn take_cookie(&mut self, cookie: &str) {
        self.cookie = Some(cookie.to_owned());
    }

    /// The cookie that it shows.
    pub(crate) fn cookie(&self) -> &str {
        self.cookie.as_deref().unwrap_or_default()
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        let cookie = self.cookie();
        let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\ncookie: {cookie}\r\n\r\n");
        self.server.ask(request.as_bytes())
    }

    /// A page that is there, as text.
    #[track_caller]
    pub(crate) fn page(&self, path: &str) -> String {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        text(&answer)
    }

    /// Sends a form of a page: with the page's hidden fields, from the page's own site.
    #[track_caller]
    pub(crate) fn submit(&self, page: &str, action: &str, fields: &[(&str, &str)]) -> Answer {
        let page = self.page(page);
        let mut all = Vec::from(fields);
        let csrf = hidden(&page, "csrf");
        let once = hidden(&page, "once");
        all.extend([("csrf", csrf.as_str()), ("once", once.as_str())]);
        self.send(action, &all, "sec-fetch-site: same-origin\r\n")
    }

    /// Sends a form as it is, with more lines of the head.
    pub(crate) fn send(&self, action: &str, fields: &[(&str, &str)], more: &str) -> Answer {
        let body = form(fields);
        let (cookie, length) = (self.cookie(), body.len());
        let request = format!(
            "POST {action} HTTP/1.1\r\nhost: localhost\r\ncookie: {cookie}\r\ncontent-length: {length}\r\n\
             content-type: application/x-www-form-urlencoded\r\n{more}\r\n{body}"
        );
        self.server.ask(request.as_bytes())
    }
}

/// An answer's body as text.
pub(crate) fn text(answer: &Answer) -> String {
    String::from_utf8_lossy(answer.body()).into_owned()
}

/// The value of a hidden field; empty if the page has none.
pub(crate) fn hidden(page: &str, name: &str) -> String {
    let field = format!("name=\"{name}\" value=\"");
    let found = page
        .split_once(&field)
        .and_then(|(_, rest)| rest.split_once('"'));
    found.map_or_else(String::new, |(value, _)| value.to_owned())
}

fn form(fields: &[(&str, &str)]) -> String {
    let mut out = form_urlencoded::Serializer::new(String::new());
    out.extend_pairs(fields);
    out.finish()
}
