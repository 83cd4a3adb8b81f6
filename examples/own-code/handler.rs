//! Charges an order once, however often it is called: `cargo run --example own-code ORDER URL`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use anyhow::Context;
use serde_json::{Value, json};

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let order = arguments.next().context("an order is expected")?;
    let url = arguments.next().context("a URL is expected")?;
    let asked =
        json!({ "name": "charge-rust", "key": order, "repeat": "once", "leaseSeconds": 30 });
    let claim = ledger("/effect/claim", &asked)?;
    if claim["verdict"] != "claimed" {
        // done: somebody has charged it, and here is what came of it. in_flight: somebody is at it. uncertain: ask a person.
        println!("{claim}");
        return Ok(());
    }
    let settle = format!(
        "/effect/{}/settle",
        claim["effectId"].as_str().context("an id")?
    );
    let fence = &claim["fence"];
    match post(&url, &[], order.as_bytes()) {
        Ok((status, _)) => {
            let result = json!({ "status": status });
            ledger(
                &settle,
                &json!({ "fence": fence, "outcome": "done", "result": result }),
            )?;
            println!("{}", json!({ "verdict": "charged", "result": result }));
            Ok(())
        }
        Err(error) => {
            // The card may have been charged, or not: say so.
            let said = error.to_string();
            ledger(
                &settle,
                &json!({ "fence": fence, "outcome": "uncertain", "error": said }),
            )?;
            Err(error)
        }
    }
}

fn ledger(path: &str, body: &Value) -> anyhow::Result<Value> {
    let base = std::env::var("HAPAX_URL").unwrap_or_else(|_| "http://127.0.0.1:8080".into());
    let token = format!("Bearer {}", std::env::var("HAPAX_TOKEN")?);
    let headers = [
        ("authorization", &*token),
        ("content-type", "application/json"),
    ];
    let url = format!("{base}/api/v1{path}");
    let (status, answer) = post(&url, &headers, body.to_string().as_bytes())?;
    anyhow::ensure!(status < 300, "{path}: {status} {answer}");
    Ok(serde_json::from_str(&answer)?)
}

/// A request without a library. Yours will have one.
#[expect(
    clippy::disallowed_methods,
    reason = "a program of its own, not part of the server"
)]
fn post(url: &str, headers: &[(&str, &str)], body: &[u8]) -> anyhow::Result<(u16, String)> {
    let rest = url
        .strip_prefix("http://")
        .context("plain HTTP is expected")?;
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let mut head = format!("POST /{path} HTTP/1.1\r\nhost: {host}\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!("content-length: {}\r\n\r\n", body.len()));
    let mut stream = TcpStream::connect(host)?;
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)?;
    let mut answer = BufReader::new(stream);
    let (mut status, mut length, mut line) = (String::new(), 0, String::new());
    answer.read_line(&mut status)?;
    while answer.read_line(&mut line)? > 2 {
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse()?;
        }
        line.clear();
    }
    let mut body = vec![0; length];
    answer.read_exact(&mut body)?;
    let status = status.split(' ').nth(1).context("a status is expected")?;
    Ok((status.parse()?, String::from_utf8(body)?))
}
