//! The demo's server, in this process.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};

use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use super::super::exit::{Exit, Failure};
use super::Args;
use super::site::{Site, unwritable};
use crate::http::{self, Host, Listening};

/// The server, in this process.
pub(super) struct Server {
    running: JoinHandle<anyhow::Result<()>>,
    end: watch::Sender<bool>,
    pub(super) listening: Listening,
    pub(super) token: String,
    /// Where the world is, to which its effects go.
    pub(super) world: SocketAddr,
}

impl Server {
    pub(super) async fn start(
        args: &Args,
        site: &Arc<Site>,
        world: SocketAddr,
    ) -> Result<Server, Failure> {
        site.configure(args.port, world)?;
        log_to(&site.path().join("server.log"))?;
        let token = site.token()?;
        let config = site.load()?.config;
        let (end, ending) = watch::channel(false);
        let (listening, listens) = oneshot::channel();
        let host = Host {
            listening,
            end: ending,
        };
        let reloaded = site.clone();
        let reload = Box::new(move || reloaded.load().map(|loaded| loaded.config));
        let running = tokio::spawn(http::host(config, reload, host));
        match listens.await {
            Ok(listening) => Ok(Server {
                running,
                end,
                listening,
                token,
                world,
            }),
            Err(_) => Err(ended(running, args.port).await),
        }
    }

    /// Ends it, and waits until it has.
    pub(super) async fn stop(self, port: u16) -> Result<(), Failure> {
        self.end.send_replace(true);
        match self.running.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(no_start(&error, port)),
            Err(error) => Err(no_start(&error.into(), port)),
        }
    }
}

/// Why a server ended that should have begun.
async fn ended(running: JoinHandle<anyhow::Result<()>>, port: u16) -> Failure {
    match running.await {
        Ok(Err(error)) => no_start(&error, port),
        Ok(Ok(())) => no_start(&anyhow::anyhow!("it was told to end"), port),
        Err(error) => no_start(&error.into(), port),
    }
}

/// What is said when it does not run.
pub(super) fn no_start(error: &anyhow::Error, port: u16) -> Failure {
    let cause = error.root_cause().downcast_ref::<std::io::Error>();
    let taken = cause.is_some_and(|cause| cause.kind() == ErrorKind::AddrInUse);
    let (text, help) = match taken {
        true => (
            format!("port {port} is taken by another process"),
            "choose another with --port, or any that is free with --port 0",
        ),
        false => (
            format!("the demo's server does not run: {error:#}"),
            "the demo needs a folder with space (--dir), a port of 127.0.0.1 (--port), and nothing else",
        ),
    };
    Failure::new(Exit::Failed, "H0407", text, help)
}

/// What the server logs is in a file: the terminal is for the story.
fn log_to(path: &Path) -> Result<(), Failure> {
    let mut options = std::fs::OpenOptions::new();
    let file = options.append(true).create(true).open(path);
    let file = file.map_err(|error| unwritable(path, &error))?;
    // A second subscriber in one process can only be a test's; the first one stays.
    let _ = tracing_subscriber::fmt()
        .with_env_filter("info,fjall=warn,lsm_tree=warn")
        .json()
        .flatten_event(true)
        .with_writer(Mutex::new(file))
        .try_init();
    Ok(())
}
