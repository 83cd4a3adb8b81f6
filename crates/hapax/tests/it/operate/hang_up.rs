//! A caller that hangs up in mid-request: what it asked for is carried out, and the same request gets its answer.

use serde_json::json;

use crate::faults::shim::Shim;
use crate::support::clock::{TOO_LONG, until};
use crate::support::server::TOKEN;
use crate::support::site::Site;

const CLAIM: &str = "/api/v1/effect/claim";
const KEY: &str = "idempotency-key: one\r\n";

/// Without a task of its own the key would be in progress until its lease ends, and the effect unclaimed.
#[test]
fn a_claim_whose_caller_hangs_up_is_settled() {
    let mut site = Site::sqlite();
    let shim = Shim::before(&mut site);
    let server = site.start();
    let body =
        json!({"name": "mail", "key": "in_1", "repeat": "once", "leaseSeconds": 60}).to_string();
    let length = body.len();
    let request = format!(
        "POST {CLAIM} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n{KEY}\r\n{body}"
    );
    // Held while it makes its key durable: the claim itself comes after that.
    shim.hang_up_at_sync(&server, request.as_bytes());

    let again = until(TOO_LONG, "the key is settled", || {
        let answer = server.ask_as(TOKEN, "POST", CLAIM, &body, KEY);
        (answer.status == 200).then_some(answer)
    });
    assert_eq!(
        again.header("idempotent-replayed"),
        Some("true"),
        "{again:?}"
    );
    assert_eq!(again.json()["verdict"], "claimed");
}
