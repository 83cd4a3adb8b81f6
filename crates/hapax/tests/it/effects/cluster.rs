//! Several servers on one database, whose configs differ in the paths of their targets: these say which node has sent a request.

use hapax_store::nouns::lane_shard;
use hapax_store::postgres::SHARDS;
use serde_json::json;

use super::scene::{fact, site};
use crate::support::sender::Sender;
use crate::support::server::Server;
use crate::support::site::Site;
use crate::support::world::Seen;

/// Servers with a short lease.
pub(super) struct Cluster {
    pub(super) nodes: Vec<Server>,
    sites: Vec<Site>,
}

impl Cluster {
    /// As many servers as there are URLs of one database. `effects` are given the path of a node.
    pub(super) fn start(urls: &[&str], effects: impl Fn(&str) -> Vec<String>) -> Cluster {
        let mut cluster = Cluster::begin(urls, effects);
        for _ in 1..urls.len() {
            cluster.join();
        }
        cluster
    }

    /// Starts the first of these servers only; see [`Cluster::join`].
    pub(super) fn begin(urls: &[&str], effects: impl Fn(&str) -> Vec<String>) -> Cluster {
        let sites = urls.iter().enumerate();
        let sites: Vec<Site> = sites
            .map(|(node, url)| site(url, &effects(&format!("/node-{node}")), ""))
            .collect();
        Cluster {
            nodes: vec![sites[0].start()],
            sites,
        }
    }

    /// The next server joins.
    pub(super) fn join(&mut self) {
        self.nodes.push(self.sites[self.nodes.len()].start());
    }

    /// Sends an event to a node; gives its id.
    #[track_caller]
    pub(super) fn send(&self, node: usize, name: &str, event_type: &str) -> String {
        send(&self.nodes[node], name, event_type)
    }
}

/// Sends an event to a server; gives its id.
#[track_caller]
pub(super) fn send(server: &Server, name: &str, event_type: &str) -> String {
    let body = fact(name, event_type, &json!({ "entity": name }));
    let answer = server.ask(&Sender::to("billing").request_with(&body));
    assert_eq!(answer.status, 200, "{answer:?}");
    let id = answer.json()["eventId"].as_str().map(str::to_owned);
    id.expect("an id")
}

/// Which node has sent it.
#[track_caller]
pub(super) fn node_of(seen: &Seen) -> usize {
    let number = seen.target.strip_prefix("/node-");
    let number = number.and_then(|number| number.parse().ok());
    number.expect("a node's path")
}

/// A lane with this prefix in a shard that fits.
pub(super) fn lane_in(prefix: &str, fits: impl Fn(u16) -> bool) -> String {
    let lanes = (0..).map(|n| format!("{prefix}-{n}"));
    let mut fitting = lanes.filter(|lane| fits(lane_shard(lane, SHARDS)));
    fitting.next().expect("there are enough numbers")
}

/// A lane with this prefix in the shard of another.
pub(super) fn lane_beside(prefix: &str, other: &str) -> String {
    lane_in(prefix, |shard| shard == lane_shard(other, SHARDS))
}
