//! Answers that are made elsewhere, and problems: their descriptions.

use serde::Serialize;
use utoipa::ToSchema;

use super::value;

/// What went wrong.
#[derive(Debug, Serialize, ToSchema)]
pub struct Problem {
    /// The code (`hapax explain CODE`).
    pub code: String,
    /// What happened and what to do next.
    pub detail: String,
    /// Where things stand, if an action was refused because of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
}

/// All that is wrong with a request.
#[derive(Debug, Serialize, ToSchema)]
pub struct Unprocessable {
    /// One entry for each thing.
    #[schema(min_items = 1)]
    pub detail: Vec<WrongPart>,
}

/// One thing that is wrong with a request.
#[derive(Debug, Serialize, ToSchema)]
pub struct WrongPart {
    /// Where: `query` or `body`, and the name of the parameter or field.
    #[schema(min_items = 2, max_items = 2)]
    pub loc: Vec<String>,
    /// What is expected.
    pub msg: String,
    /// The kind of mistake, for programs.
    pub r#type: String,
}

/// What would happen if somebody acted now.
#[derive(Debug, Serialize, ToSchema)]
pub struct Verdict {
    /// Where the ledger of the event stands; `ifRevision` of an action.
    #[schema(schema_with = value::revision)]
    pub revision: u64,
    /// The verdict.
    #[schema(schema_with = value::verdict)]
    pub verdict: String,
    /// Why.
    pub reasons: Vec<String>,
    /// What would happen to each effect.
    pub effects: Vec<VerdictOnEffect>,
}

/// What would happen to one effect.
#[derive(Debug, Serialize, ToSchema)]
pub struct VerdictOnEffect {
    /// Its name.
    pub name: String,
    /// Its key.
    pub key: String,
    /// Where it stands.
    #[schema(schema_with = value::state)]
    pub state: String,
    /// What happens if it is carried out twice.
    #[schema(schema_with = value::repeat)]
    pub repeat: String,
    /// What would happen to it.
    #[schema(schema_with = value::would)]
    pub would: String,
    /// Why.
    pub why: String,
}

/// What was done.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Acted {
    /// What was said about it before it was done.
    pub verdict: Verdict,
    /// The run that it is.
    #[schema(schema_with = value::run_id)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// The event that a conflict became.
    #[schema(schema_with = value::event_id)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_id: Option<String>,
}

/// What somebody should look at.
#[derive(Debug, Serialize, ToSchema)]
pub struct AlertsTold {
    /// The alerts that stand, then those that were cleared lately.
    pub data: Vec<AlertTold>,
}

/// One alert.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AlertTold {
    /// What it is about, such as `dead_letters`.
    pub kind: String,
    /// The source, lane or queue that it is about.
    pub subject: String,
    /// How bad it is.
    pub severity: String,
    /// Its code (`hapax explain CODE`).
    pub code: String,
    /// What was seen, with figures.
    pub text: String,
    /// What to do about it.
    pub advice: String,
    /// Since when it stands.
    pub since: String,
    /// When it was cleared, if it was.
    pub cleared_at: Option<String>,
}
