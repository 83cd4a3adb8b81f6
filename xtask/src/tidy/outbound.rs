//! Only the sender opens outbound connections, behind the address gate; the guard, to its upstreams, with the sender's connector; and the
//! command line, to the server's API.

use super::Finding;
use super::tree::{File, Tree};

const CLIENTS: [&str; 11] = [
    "TcpStream::connect",
    "TcpStream::connect_timeout",
    "TcpSocket::new_v4",
    "TcpSocket::new_v6",
    "UdpSocket::bind",
    "Client::builder",
    "HttpConnector::new",
    "conn::http1::handshake",
    "conn::http2::handshake",
    "h2::client::Builder",
    "reqwest::",
];

/// Folder and file name of the places that may.
const DOORS: [(&str, &str); 8] = [
    ("crates/hapax/src/dispatch/", "connect.rs"),
    ("crates/hapax/src/dispatch/", "sender.rs"),
    // To name servers.
    ("crates/hapax/src/dispatch/", "dns.rs"),
    ("crates/hapax/src/guard/", "upstream.rs"),
    ("crates/hapax/src/guard/upstream/", "connection.rs"),
    ("crates/hapax/src/cli/", "client.rs"),
    // The load generator and the question whether a server is up: loopback only, both check it.
    ("xtask/src/load/", "connection.rs"),
    ("xtask/src/", "loopback.rs"),
];

/// Clients built in other files.
pub(super) fn outside_the_sender(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust("").filter(|file| file.path.contains("src/")) {
        if DOORS.iter().any(|door| is_door(file, door)) {
            continue;
        }
        for (line, pattern) in file.program_lines_with(&CLIENTS) {
            let message = format!("{pattern}: only the sender opens outbound connections");
            findings.push(Finding::failure(&file.path, line, message));
        }
    }
    findings
}

fn is_door(file: &File, (folder, name): &(&str, &str)) -> bool {
    file.path.starts_with(folder) && file.name() == *name
}

#[cfg(test)]
mod tests {
    use super::super::tests::places;
    use super::*;

    #[test]
    fn a_client_elsewhere_is_found() {
        let text = "async fn f() { TcpStream::connect(a).await }\n";
        let files = [
            ("crates/hapax/src/dispatch/http/connect.rs", text),
            ("crates/hapax/src/cli/client.rs", text),
            ("crates/hapax/src/inbox/client.rs", text),
            (
                "crates/hapax/src/dispatch/lane.rs",
                "let c = Client::builder(x);\n",
            ),
            ("crates/hapax/tests/it/serve.rs", text),
        ];
        let expected = [
            "crates/hapax/src/dispatch/lane.rs:1",
            "crates/hapax/src/inbox/client.rs:1",
        ];
        assert_eq!(places(outside_the_sender, &files), expected);
    }
}
