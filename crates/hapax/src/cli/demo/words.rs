//! The first and the last words: where things are, what to try, and how it ended.

use super::super::exit::Exit;
use super::company::{APP, ENDPOINT};
use super::lots::Lots;
use super::server::Server;
use super::site::Site;
use super::tell::{bold, say};

/// Where things are, and three things to try.
pub(super) fn introduce(site: &Site, lots: Lots, server: &Server, hapax: &str) {
    let address = server.listening.address;
    let folder = site.path().display();
    let (pid, token) = (std::process::id(), &server.token);
    let kept = match site.is_temporary() {
        true => "temporary; it goes with the demo",
        false => "kept",
    };
    let lines = [
        format!(
            "dashboard  {}   log in with the token",
            bold(&format!("http://{address}/"))
        ),
        format!("token      {}", bold(token)),
        format!("config     {}", site.config().display()),
        format!("folder     {folder} ({kept}): hapax.db, world.jsonl, server.log"),
        format!("guard      http://{}   seed {}", guard(server), lots.seed()),
        String::new(),
        "three things to try in another terminal".to_owned(),
        format!("  export HAPAX_URL=http://{address} HAPAX_TOKEN={token}"),
        "  1. kill it in the middle, and start it again where it was:".to_owned(),
        format!(
            "       kill -9 {pid}; {hapax} demo --port {} --dir {folder}",
            address.port()
        ),
        "  2. do the rest of an event that is half done (its id comes along below):".to_owned(),
        format!("       {hapax} events list --status dead"),
        "  3. rotate the secret of the customer's endpoint; nothing is lost, since both sign for a day:".to_owned(),
        format!("       {hapax} endpoints rotate {APP} {ENDPOINT}"),
        String::new(),
    ];
    for line in lines {
        say(&line);
    }
}

fn guard(server: &Server) -> String {
    let guard = server.listening.guards.first();
    guard.map_or_else(String::new, ToString::to_string)
}

/// The end that somebody asked for.
pub(super) fn goodbye(site: &Site, unjudged: bool) -> Exit {
    let folder = site.path().display();
    say("");
    match site.is_temporary() {
        true => say("ended; the temporary folder is removed"),
        false => say(&format!(
            "ended; {folder} is kept, and --dir {folder} goes on with it"
        )),
    }
    match unjudged {
        true => {
            say("it was ended before its time, so nothing was checked");
            Exit::Failed
        }
        false => Exit::Ok,
    }
}

/// How this program was called, for commands to copy.
pub(super) fn called() -> String {
    let called = std::env::args().next();
    called
        .filter(|called| called.contains('/'))
        .unwrap_or_else(|| "hapax".to_owned())
}
