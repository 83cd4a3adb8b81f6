//! The web pages, over real HTTP: the way in, who sees and does what, what pages say to browsers, and that nothing in a payload, a
//! name or a key is ever markup.
//!
//! - [`login`]: in and out of the dashboard
//! - [`portal`]: in and out of the consumers' portal, and whose pages it shows; [`portal_acts`]: what is done there

mod browser;
mod login;
mod portal;
mod portal_acts;
mod portal_scene;
mod seen;
mod walk;
