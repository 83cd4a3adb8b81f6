//! The web pages, over real HTTP: the way in, who sees and does what, what pages say to browsers, and that nothing in a payload, a
//! name or a key is ever markup.
//!
//! - [`login`]: in and out of the dashboard; [`search`]: events by a text in their key; [`endpoint`]: endpoints as operators see them
//! - [`portal`]: in and out of the consumers' portal, and whose pages it shows; [`portal_acts`]: what is done there

mod browser;
mod endpoint;
mod event;
mod login;
mod portal;
mod portal_acts;
mod portal_scene;
mod search;
mod seen;
mod walk;
