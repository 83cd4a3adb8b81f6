//! The web pages. Data in, markup out: no page here asks for anything, and none knows a status code.
//!
//! - [`assets`]: the style sheet and the script, under names that change with their content
//! - [`frame`]: what every page has around it; [`parts`]: times, ids, badges, tables, forms
//! - [`json`]: the answers of the API, read; [`indent`](mod@indent): JSON as people read it
//! - [`chart`]: lines over time, as SVG
//! - [`overview`]: what needs a person, and how it goes
//! - [`events`]: the list of events; [`event`]: one of them, with its [`effect`]s and its [`verdict`]; [`diff`]: how bodies differ
//! - [`queues`]: review, dead letters, effects; [`replays`]: replays of many events
//! - [`sources`], [`guard`], [`apps`]: where requests come from and go to; [`admin`]: tokens, the audit log, settings
//! - [`login`], [`trouble`]: the way in, and what went wrong
//! - [`portal`]: the consumers' pages
//!
//! ## How a page is added
//!
//! 1. A file here with `pub fn page(looker: &Looker, ...) -> Markup`. Its data are the API's own answers
//!    ([`serde_json::Value`], read through [`json::Json`]), and it ends in [`frame::page`]. [`maud::html`] escapes; nothing is ever
//!    put in with `PreEscaped`. No `style` attribute and no inline script: the CSP refuses both.
//! 2. A handler in `http/pages/`: `async fn show(ask: Ask, ...) -> Shown`. [`Ask`](crate::http::pages::ask::Ask) is who looks and
//!    their way to the API: `ask.get("/event/...").await?` calls the API's own router inside the process, with the token of the
//!    session, so that a page can do nothing that its reader could not do with the API, and roles, audit and problems are the API's.
//! 3. A line in `http/pages/mod.rs`, in the router of those who are logged in.
//!
//! A form is [`parts::form`] (it carries the CSRF token and a key under which it counts once), its handler takes
//! [`Submitted`](crate::http::pages::submitted::Submitted), which has checked both, posts JSON with `ask.post(path, body, key)`, and
//! answers with [`back_to`](crate::http::pages::shown::back_to), which redirects with a word of [`frame::DONE`]; or with the page
//! again and the [`Trouble`](crate::http::pages::ask::Trouble) in it. Forms are shown to those who may send them
//! ([`frame::Looker::acts`]); the API refuses the others in any case.
//!
//! What a script adds is in `assets/hapax.js`, found by `data-` attributes; all that can be read is there without it.

pub mod admin;
pub mod apps;
pub mod assets;
pub mod chart;
pub mod diff;
pub mod effect;
pub mod event;
pub mod events;
pub mod frame;
pub mod guard;
pub mod indent;
pub mod json;
pub mod login;
pub mod overview;
pub mod parts;
pub mod portal;
pub mod queues;
pub mod replays;
pub mod sources;
pub mod trouble;
pub mod verdict;
