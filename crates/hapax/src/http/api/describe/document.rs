//! The document: its head, the roles, and what every door may answer.

use axum::Extension;
use axum::response::IntoResponse;
use bytes::Bytes;
use hapax_ledger::guard::KEY_BYTES_MAX;
use hapax_store::nouns::Role;
use http::{Method, StatusCode};
use utoipa::ToSchema;
use utoipa::openapi::extensions::ExtensionsBuilder;
use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder, ParameterIn, PathItem};
use utoipa::openapi::schema::{ComponentsBuilder, Type};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    ContentBuilder, InfoBuilder, ObjectBuilder, OpenApi, OpenApiBuilder, Ref, RefOr, Response,
    ResponseBuilder,
};

use super::told;
use crate::http::answer;

/// The extension that names the least role of an operation.
const ROLE: &str = "x-hapax-role";
/// The extension that says whose tokens may ask.
const SCOPE: &str = "x-hapax-scope";
/// How the document calls the one way to say who one is.
const BEARER: &str = "bearer";

const ABOUT: &str = "The ledger for operators and programs. Errors carry a code; `hapax explain CODE` says more. \
    Lists are read page by page, with `iterator`. A POST with an `Idempotency-Key` is carried out once.";

/// The whole document, as it is served.
#[derive(Clone, Debug)]
pub struct Document(Bytes);

impl Document {
    /// The document about these routes.
    pub fn new(routes: OpenApi) -> Document {
        let document = head().merge_from(routes);
        // Only a map with keys that are not text cannot be written, and there is none.
        Document(document.to_json().unwrap_or_default().into())
    }
}

/// The description of this API, as OpenAPI 3.1.
#[utoipa::path(get, path = "/openapi.json", operation_id = "getDescription", tag = "about",
    responses((status = OK, description = "the document", body = serde_json::Value)))]
pub async fn show(Extension(document): Extension<Document>) -> impl IntoResponse {
    answer::with_type(StatusCode::OK, "application/json", document.0)
}

fn head() -> OpenApi {
    let info = InfoBuilder::new()
        .title("Hapax")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(ABOUT));
    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some(
            "the admin token of the config, or one that `hapax token create` made",
        ));
    // `schema_from` adds one schema, not those that it refers to.
    let mut parts = Vec::new();
    told::Problem::schemas(&mut parts);
    told::Unprocessable::schemas(&mut parts);
    let components = ComponentsBuilder::new()
        .schema_from::<told::Problem>()
        .schema_from::<told::Unprocessable>()
        .schemas_from_iter(parts)
        .security_scheme(BEARER, SecurityScheme::Http(bearer.build()));
    OpenApiBuilder::new()
        .info(info.build())
        .components(Some(components.build()))
        .build()
}

/// Whose tokens may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Those for everything.
    All,
    /// Those for the one application that the path names, too.
    OneApp,
    /// Those for any one application, too.
    Anyone,
}

impl Scope {
    const fn word(self) -> &'static str {
        match self {
            Scope::All => "all",
            Scope::OneApp => "app",
            Scope::Anyone => "any",
        }
    }
}

/// Says of every operation which role it needs and what the doors in front of it may answer.
pub fn guard(routes: &mut OpenApi, least: fn(&Method) -> Role, scope: Scope) {
    for item in routes.paths.paths.values_mut() {
        for (method, operation) in operations(item) {
            demand(operation, least(&method), scope);
            answer_for_all(operation);
            match method {
                Method::POST => answer_for_posts(operation),
                Method::PUT | Method::PATCH | Method::DELETE => answer_for_changes(operation),
                _ => {}
            }
        }
    }
}

/// The operations of a path.
fn operations(item: &mut PathItem) -> impl Iterator<Item = (Method, &mut Operation)> {
    let all = [
        (Method::GET, &mut item.get),
        (Method::POST, &mut item.post),
        (Method::PUT, &mut item.put),
        (Method::PATCH, &mut item.patch),
        (Method::DELETE, &mut item.delete),
    ];
    all.into_iter()
        .filter_map(|(method, operation)| Some((method, operation.as_mut()?)))
}

fn demand(operation: &mut Operation, role: Role, scope: Scope) {
    let bearer = SecurityRequirement::new::<_, [&str; 0], &str>(BEARER, []);
    operation.security = Some(vec![bearer]);
    let demands = ExtensionsBuilder::new()
        .add(ROLE, role.word())
        .add(SCOPE, scope.word())
        .build();
    operation.extensions.get_or_insert_default().merge(demands);
}

/// What can be wrong with any request. What an operation says itself stays.
fn answer_for_all(operation: &mut Operation) {
    add(operation, problem(&answer::NO_TOKEN));
    add(operation, problem(&answer::FORBIDDEN));
    add(operation, problem(&answer::UNAVAILABLE));
    if has(operation, &ParameterIn::Path) {
        add(operation, problem(&answer::NOT_FOUND));
    }
    if has(operation, &ParameterIn::Query) {
        add(operation, unprocessable("a parameter is not understood"));
    }
}

/// What can be wrong with any request that changes something.
fn answer_for_changes(operation: &mut Operation) {
    add(operation, problem(&answer::BAD_KEY));
    add(operation, problem(&answer::TOO_SLOW));
    add(operation, problem(&answer::TOO_LARGE));
    add(operation, problem(&answer::KEY_REUSED));
    add(operation, unprocessable("the body is not understood"));
}

/// The same, and the key under which it is carried out once.
fn answer_for_posts(operation: &mut Operation) {
    answer_for_changes(operation);
    let parameters = operation.parameters.get_or_insert_default();
    parameters.push(RefOr::T(idempotency_key()));
}

fn idempotency_key() -> Parameter {
    let schema = ObjectBuilder::new()
        .schema_type(Type::String)
        .min_length(Some(1))
        .max_length(Some(KEY_BYTES_MAX))
        // Printable ASCII that does not begin with a quote: the bare form.
        .pattern(Some("^[!#-~]([ -~]*[!-~])?$"));
    ParameterBuilder::new()
        .name("Idempotency-Key")
        .parameter_in(ParameterIn::Header)
        .description(Some(
            "The same key with the same request gives the first answer again. Bare, or quoted as structured fields are.",
        ))
        .schema(Some(schema))
        .build()
}

fn has(operation: &Operation, place: &ParameterIn) -> bool {
    let parameters = operation.parameters.iter().flatten();
    parameters
        .into_iter()
        .any(|parameter| matches!(parameter, RefOr::T(one) if one.parameter_in == *place))
}

fn add(operation: &mut Operation, (status, response): (StatusCode, Response)) {
    let responses = &mut operation.responses.responses;
    let status = status.as_str().to_owned();
    responses.entry(status).or_insert(RefOr::T(response));
}

fn problem(problem: &answer::Problem) -> (StatusCode, Response) {
    (problem.status, of::<told::Problem>(problem.detail))
}

fn unprocessable(why: &str) -> (StatusCode, Response) {
    let response = of::<told::Unprocessable>(why);
    (StatusCode::UNPROCESSABLE_ENTITY, response)
}

fn of<T: ToSchema>(description: &str) -> Response {
    let schema = Ref::from_schema_name(T::name());
    let content = ContentBuilder::new().schema(Some(schema)).build();
    ResponseBuilder::new()
        .description(description)
        .content("application/json", content)
        .build()
}
