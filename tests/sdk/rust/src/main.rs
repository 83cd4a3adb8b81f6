//! Drives a Hapax server with the Svix SDK for Rust. Panics at the first thing that is not as the SDK expects it.
//!
//! `HAPAX_URL` and `HAPAX_TOKEN` say where the server is and who asks. Its endpoints may be on 127.0.0.1, and what fails is tried once.
//!
//! - `app`, `event_type`, `endpoint`: the catalogue
//! - `message`, `attempt`: what is published, and what became of it; `rotation`: what it is signed with
//! - `recovery`: sending again; `poller`: messages for those who ask; `statistics`: figures
//! - `operational`: endpoints of operators; `portal`: access for consumers; `refusal`: what is not offered
//! - `scene`: the server and the sink; `ask`: how answers are looked at

mod app;
mod ask;
mod attempt;
mod clock;
mod endpoint;
mod event_type;
mod message;
mod operational;
mod poller;
mod portal;
mod recovery;
mod refusal;
mod rotation;
mod scene;
mod sink;
mod statistics;

use ask::said;
use scene::Scene;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let scene = Scene::new().await;
    app::check(&scene).await;
    event_type::check(&scene).await;
    let endpoint = endpoint::check(&scene).await;
    let message = message::check(&scene, &endpoint).await;
    attempt::check(&scene, &endpoint, &message).await;
    rotation::check(&scene, &endpoint).await;
    recovery::check(&scene).await;
    poller::check(&scene).await;
    statistics::check(&scene).await;
    operational::check(&scene).await;
    portal::check(&scene).await;
    refusal::check(&scene, &message).await;
    message::expunge_all(&scene).await;
    app::end(&scene).await;
    said("all well");
}
