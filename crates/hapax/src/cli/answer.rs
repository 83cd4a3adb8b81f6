//! What the API answers, and what its refusals mean to somebody at a prompt.

use serde_json::Value;

use super::client::{Answer, Client};
use super::exit::{Exit, Failure};
use super::list::Noun;
use super::pages;

/// The JSON of a good answer; a refusal in words otherwise. `what` is what was asked for.
pub(super) fn expect_json(
    client: &Client,
    answer: &Answer,
    noun: Noun,
    what: &str,
) -> Result<Value, Failure> {
    let json: Option<Value> = serde_json::from_slice(&answer.body).ok();
    match (answer.is_good(), json) {
        (true, Some(json)) => Ok(json),
        (true, None) => {
            let text = format!("{} did not answer with JSON", client.base());
            let help = "HAPAX_URL may point at something else than Hapax, or at another version";
            Err(Failure::new(Exit::Failed, "H0410", text, help))
        }
        (false, json) => Err(refusal(client, answer.status, json.as_ref(), noun, what)),
    }
}

fn refusal(client: &Client, status: u16, json: Option<&Value>, noun: Noun, what: &str) -> Failure {
    let base = client.base();
    let detail = json.map(detail).unwrap_or_default();
    match status {
        401 => {
            let text = match client.has_token() {
                true => format!("the server at {base} does not know this HAPAX_TOKEN"),
                false => format!("HAPAX_TOKEN is not set, and {base} asks for it"),
            };
            let help = "set HAPAX_TOKEN to the admin token, which the server printed at its first start, or to one made with `hapax token create`";
            Failure::new(Exit::Failed, "H0301", text, help)
        }
        403 => {
            let text = format!("{base} does not let this HAPAX_TOKEN do that: {detail}");
            let help = "use a token with a higher role; `hapax token list` shows whose is whose";
            Failure::new(Exit::Failed, "H0306", text, help)
        }
        409 => conflict(json, &detail),
        502 => {
            let text = format!("{base} asked in vain: {detail}");
            let help = "nothing was changed; look at that service, and try again";
            Failure::new(Exit::Failed, "H0315", text, help)
        }
        404 => {
            let text = format!("{base} has no {what}");
            let help = format!("`hapax {} list` shows what is there", noun.many);
            Failure::new(Exit::NotFound, "H0302", text, help)
        }
        422 => {
            let text = format!("{base} does not understand a value: {detail}");
            Failure::new(
                Exit::Usage,
                "H0303",
                text,
                "change the option that it names",
            )
        }
        503 => {
            let text = format!("{base} cannot answer now: {detail}");
            Failure::new(
                Exit::Failed,
                "H0205",
                text,
                "try again; /readyz of the server says how it is",
            )
        }
        _ => {
            let text = format!("{base} answered {status}: {detail}");
            let help = "HAPAX_URL may point at something else than Hapax, or at another version";
            Failure::new(Exit::Failed, "H0410", text, help)
        }
    }
}

/// Refused by where things stand. Only codes that have a page are shown as such.
fn conflict(json: Option<&Value>, detail: &str) -> Failure {
    let code = json.and_then(|json| json["code"].as_str()).unwrap_or("");
    let (exit, code, help) = match pages::find(code).map(|page| page.code) {
        Some(code @ ("H0310" | "H0311" | "H0312" | "H0313" | "H0314")) => (
            Exit::Refused,
            code,
            "`hapax events verdict ID` shows where things stand",
        ),
        Some(code @ ("H0340" | "H0347")) => (
            Exit::Refused,
            code,
            "`hapax keys show ID` shows where the key stands",
        ),
        Some(code) => (Exit::Failed, code, "nothing was done"),
        None => (Exit::Failed, "H0410", "nothing was done"),
    };
    Failure::new(exit, code, detail, help)
}

/// `{"code","detail"}`, or the list of a 422: `{"detail":[{"loc","msg","type"}]}`.
fn detail(json: &Value) -> String {
    match &json["detail"] {
        Value::String(detail) => detail.clone(),
        Value::Array(items) => {
            let item = |item: &Value| {
                let name = item["loc"].as_array().and_then(|loc| loc.last()?.as_str());
                format!("{}: {}", name.unwrap_or("?"), text(&item["msg"]))
            };
            items.iter().map(item).collect::<Vec<_>>().join("; ")
        }
        _ => String::new(),
    }
}

/// A JSON value as a cell of a table.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
