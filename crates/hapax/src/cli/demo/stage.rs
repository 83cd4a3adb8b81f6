//! Starts the server and the world, plays, and ends.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use super::super::client::Client;
use super::super::exit::{Exit, Failure};
use super::Args;
use super::company::Company;
use super::deed::{Deed, Log};
use super::judge::judge;
use super::ledger::{self, Ledger};
use super::lots::Lots;
use super::provider::Provider;
use super::rounds::Cast;
use super::server::{Server, no_start};
use super::site::{Site, unwritable};
use super::tell::{Who, tell};
use super::world::{self, World};
use super::{charges, consumer, summary, words};
use crate::http::said;
use crate::{clock, entropy};

/// How long everything may take to come to rest. A mail that a killed process left open is asked about for half a minute.
const REST_MAX: Duration = Duration::from_secs(150);
/// How often it is looked.
const LOOK: Duration = Duration::from_millis(200);

/// Plays the demo in a folder.
pub(super) async fn play(
    args: &Args,
    length: Option<Duration>,
    site: &Arc<Site>,
) -> Result<Exit, Failure> {
    let stop = stop_on_signals().map_err(|error| no_start(&error.into(), args.port))?;
    let log_file = site.path().join("world.jsonl");
    let log = Log::open(&log_file).map_err(|error| unwritable(&log_file, &error))?;
    let lots = lots(args, &log);
    let world = Arc::new(World {
        log: log.clone(),
        lots,
        consumer: consumer::Consumer::default(),
        charges_refused: charges::Refused::default(),
    });
    let listener = TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.map_err(|error| no_start(&error.into(), args.port))?;
    let address = listener.local_addr();
    let address = address.map_err(|error| no_start(&error.into(), args.port))?;
    // The world outlives the server, which finishes what it has begun.
    let (end_world, ending) = watch::channel(false);
    let living = tokio::spawn(world::run(listener, world.clone(), ending));
    let server = Server::start(args, site, address).await?;
    let played = perform(args, length, site, &world, &server, stop).await;
    let stopped = server.stop(args.port).await;
    end_world.send_replace(true);
    let _ = living.await;
    let exit = played?;
    stopped?;
    match log.broken() {
        Some(error) => Err(unwritable(&log_file, &error)),
        None => Ok(exit),
    }
}

/// What chance follows from: the user's word, the folder's, or a new one.
fn lots(args: &Args, log: &Log) -> Lots {
    let known = log.deeds().into_iter().find_map(|deed| match deed {
        Deed::Began { seed } => Some(seed),
        _ => None,
    });
    let seed = known.or(args.seed).unwrap_or_else(|| {
        // Short enough to be typed again.
        u64::from(u16::from_be_bytes(entropy::bytes()))
    });
    if known.is_none() {
        log.note(Deed::Began { seed });
    }
    Lots::new(seed)
}

/// Becomes true with SIGINT or SIGTERM.
fn stop_on_signals() -> std::io::Result<watch::Receiver<bool>> {
    let mut int = signal(SignalKind::interrupt())?;
    let mut term = signal(SignalKind::terminate())?;
    let (stop, stopping) = watch::channel(false);
    tokio::spawn(async move {
        tokio::select! {
            _ = int.recv() => {}
            _ = term.recv() => {}
        }
        stop.send_replace(true);
        // Nobody hears that it is gone; it stays true.
        std::future::pending::<()>().await;
    });
    Ok(stopping)
}

/// The play itself, from the first customer to the verdict.
async fn perform(
    args: &Args,
    length: Option<Duration>,
    site: &Site,
    world: &World,
    server: &Server,
    stop: watch::Receiver<bool>,
) -> Result<Exit, Failure> {
    let cast = cast(args, site, world, server)?;
    can_commit(site, &cast.api).await?;
    let hooks = format!("http://{}/hooks", server.world);
    world.consumer.learn(&cast.company.set_up(&hooks).await?);
    words::introduce(site, world.lots, server, &cast.hapax);
    cast.play(length, stop.clone()).await;
    if length.is_none() || *stop.borrow() {
        return Ok(words::goodbye(site, length.is_some()));
    }
    let text = "the time is over: waiting until everything has come to rest";
    tell(Who::Hapax, text);
    if !rest(&cast.api, stop).await? {
        return Ok(words::goodbye(site, true));
    }
    cast.half_done().await;
    if args.plant_repeat {
        plant(server, &world.log).await?;
    }
    let ledger = Ledger::read(&cast.api).await?;
    let account = judge(&world.log.deeds(), &ledger);
    summary::show(&account, &ledger);
    match account.differences.len() {
        0 => Ok(Exit::Ok),
        count => {
            let text = format!("the world's own log and the ledger differ in {count} places");
            let help = format!("the same again: --seed {}", world.lots.seed());
            Err(Failure::new(Exit::Failed, "H0416", text, help))
        }
    }
}

/// A server whose disk is full takes nothing: better said at once than told as a story of refusals.
async fn can_commit(site: &Site, api: &Client) -> Result<(), Failure> {
    let answer = api.get("/readyz").await?;
    if answer.is_good() {
        return Ok(());
    }
    let path = site.path().display();
    let text = format!(
        "there is too little space in {path}: the server keeps 64 MiB free and takes nothing below that"
    );
    let help = "make room, or name another folder with --dir";
    Err(Failure::new(Exit::Failed, "H0406", text, help))
}

/// Who acts.
fn cast(args: &Args, site: &Site, world: &World, server: &Server) -> Result<Cast, Failure> {
    let address = server.listening.address;
    let api = Arc::new(Client::of(address, Some(&server.token))?);
    let guard = server.listening.guards.first().copied().unwrap_or(address);
    let loaded = site.load()?;
    let source = loaded.config.sources.into_iter().next();
    let source = source.ok_or_else(|| no_start(&anyhow::anyhow!("it has no source"), args.port))?;
    Ok(Cast {
        provider: Arc::new(Provider {
            client: Client::of(address, None)?,
            source,
            log: world.log.clone(),
            lots: world.lots,
        }),
        company: Arc::new(Company {
            api: api.clone(),
            guard: Client::of(guard, None)?,
            log: world.log.clone(),
        }),
        api,
        log: world.log.clone(),
        hapax: words::called(),
        told: AtomicBool::new(false),
    })
}

/// Waits until everything has come to rest; says whether it may be judged, and not that somebody wants it to end.
async fn rest(api: &Client, mut stop: watch::Receiver<bool>) -> Result<bool, Failure> {
    let began = clock::tick();
    loop {
        let (moving, uncertain) = ledger::unsettled(api).await?;
        let late = clock::since(began) >= REST_MAX;
        match (moving, uncertain) {
            (0, 0) => return Ok(true),
            // That nobody can tell is an answer, too.
            (0, _) if late => return Ok(true),
            (moving, _) if late => {
                let text = format!("{moving} effects have not come to rest within {REST_MAX:?}");
                let help = "the machine may be very busy; what is under way goes on with the next start on the same --dir";
                return Err(Failure::new(Exit::Failed, "H0416", text, help));
            }
            _ => {}
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            () = said(&mut stop) => return Ok(false),
        }
    }
}

/// One mail once more, behind the ledger's back: what `--plant-repeat` is for.
async fn plant(server: &Server, log: &Log) -> Result<(), Failure> {
    let mail = log.deeds().into_iter().find_map(|deed| match deed {
        Deed::Asked {
            effect,
            key,
            fact,
            did: true,
            ..
        } if effect == "send-welcome-email" => Some((effect, key, fact)),
        _ => None,
    });
    let Some((effect, key, fact)) = mail else {
        return Ok(());
    };
    let world = Client::of(server.world, None)?;
    let headers = [
        ("hapax-effect".to_owned(), effect.clone()),
        ("idempotency-key".to_owned(), format!("{effect}:{key}")),
    ];
    let body = serde_json::json!({"data": {"object": {"id": fact}}}).to_string();
    // The mailer may be busy, as it is now and then.
    let sent = |log: &Log| {
        let deeds = log.deeds().into_iter();
        deeds
            .filter(|deed| matches!(deed, Deed::Asked { effect: name, key: other, did: true, .. } if *name == effect && *other == key))
            .count()
    };
    while sent(log) < 2 {
        let _ = world.deliver("/effect", &headers, body.as_bytes()).await;
    }
    Ok(())
}
