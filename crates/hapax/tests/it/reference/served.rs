//! `openapi.json`: what a server says of itself.

use serde_json::Value;

use super::check;
use crate::support::site::Site;

#[test]
fn the_api_is_described_as_it_is() {
    let server = Site::sqlite().start();
    let description: Value = server.get("/api/v1/openapi.json").json();
    assert_eq!(description["openapi"], "3.1.0", "{description}");
    check("openapi.json", &format!("{description:#}\n"));
}
