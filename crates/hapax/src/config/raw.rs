//! The configuration as it is written: which fields there are, and nothing about what they mean.

use toml::de::DeTable;

use super::alerts::{self, RawAlerts};
use super::effect::raw::{self as effect, RawEffect, RawOrder, RawReconcile};
use super::guard::raw::{self as guard, RawGuard};
use super::outbox::{self, RawOutbox};
use super::portal::{self, RawPortal};
use super::scan::{At, Scan, Text};
use super::spec::{self, RawVerify};
use super::table::{Number, Table, Texts, has_userinfo};

/// How much of a file is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope<'n> {
    /// All of it.
    Whole,
    /// One source and what it needs, so that nobody has to have the secrets of the others.
    Source(&'n str),
}

/// All of `hapax.toml`.
#[derive(Debug, Default)]
pub(super) struct Raw {
    pub(super) listen: Option<Text>,
    pub(super) store: Option<Text>,
    pub(super) public_url: Option<Text>,
    pub(super) admin_token: Option<Text>,
    pub(super) vault_key: Option<Text>,
    pub(super) limits: RawLimits,
    pub(super) alerts: Option<RawAlerts>,
    pub(super) outbox: Option<RawOutbox>,
    pub(super) portal: Option<RawPortal>,
    pub(super) sources: Vec<RawSource>,
    /// The names of all sources, wanted or not.
    pub(super) source_names: Vec<String>,
    pub(super) effects: Vec<RawEffect>,
    pub(super) guards: Vec<RawGuard>,
    /// What keys the effects of a source that is wanted alone ask for, as far as they can be read.
    pub(super) effect_keys: Vec<String>,
}

/// `[limits]`.
#[derive(Debug, Default)]
pub(super) struct RawLimits {
    pub(super) body_size: Option<Text>,
    pub(super) connections: Option<Number>,
    pub(super) inflight: Option<Text>,
    pub(super) header_timeout: Option<Text>,
    pub(super) body_timeout: Option<Text>,
    pub(super) lease: Option<Text>,
}

/// `[[source]]`.
#[derive(Debug)]
pub(super) struct RawSource {
    pub(super) at: At,
    /// Fields that are there, wrong or misspelt as they may be: that they are missing would be said in vain.
    pub(super) meant: Vec<&'static str>,
    pub(super) name: Option<Text>,
    pub(super) provider: Option<Text>,
    pub(super) secrets: Option<Texts>,
    pub(super) verify_token: Option<Text>,
    pub(super) key: Option<Texts>,
    pub(super) event_type: Option<Text>,
    pub(super) id: Option<Text>,
    pub(super) entity: Option<Text>,
    pub(super) payload: Option<Text>,
    pub(super) ledger: Option<Text>,
    pub(super) identity: Option<Text>,
    pub(super) retry_window: Option<Text>,
    pub(super) volatile: Option<Texts>,
    pub(super) trust_unsigned_id: bool,
    pub(super) verify: Option<RawVerify>,
    pub(super) order: Option<RawOrder>,
    pub(super) reconcile: Option<RawReconcile>,
    pub(super) on_duplicate_of_failed: Option<Text>,
}

/// Reads the file's root table.
pub(super) fn read(scan: &Scan<'_>, table: DeTable<'_>, scope: Scope<'_>) -> Raw {
    let mut top = Table::new(scan, "", 0..0, table);
    let mut raw = Raw {
        public_url: top.text("public_url"),
        ..Raw::default()
    };
    if scope == Scope::Whole {
        raw.listen = top.text("listen");
        raw.store = store(&mut top);
        raw.admin_token = top.table("admin", "[admin]").and_then(admin);
        raw.vault_key = top.secret_or_unset("vault_key");
        raw.limits = top
            .table("limits", "[limits]")
            .map(limits)
            .unwrap_or_default();
        raw.alerts = top.table("alerts", "[alerts]").map(alerts::read);
        raw.outbox = top.table("outbox", "[outbox]").map(outbox::read);
        raw.portal = top.table("portal", "[portal]").map(portal::read);
    } else {
        for name in [
            "listen",
            "store",
            "admin",
            "vault_key",
            "limits",
            "alerts",
            "outbox",
            "portal",
        ] {
            top.value(name);
        }
    }
    for table in top.tables("source", "[[source]]") {
        let name = table.peek("name").map(str::to_owned);
        let wanted = match scope {
            Scope::Whole => true,
            Scope::Source(wanted) => name.as_deref() == Some(wanted),
        };
        raw.source_names.extend(name);
        if wanted {
            raw.sources.push(source(scan, table, scope));
        }
    }
    for table in top.tables("effect", "[[effect]]") {
        match scope {
            Scope::Whole => raw.effects.push(effect::effect(table)),
            Scope::Source(wanted) if table.peek("source") == Some(wanted) => {
                raw.effect_keys.extend(table.peek("key").map(str::to_owned));
            }
            Scope::Source(_) => {}
        }
    }
    match scope {
        Scope::Whole => {
            let guards = top.tables("guard", "[[guard]]");
            raw.guards = guards.into_iter().map(guard::guard).collect();
        }
        // Whoever only sends or verifies need not have their keys.
        Scope::Source(_) => {
            top.value("guard");
        }
    }
    top.finish(&[]);
    raw
}

/// A database URL may hold a password, however it is misspelt: then it is hidden; a file's name is not.
fn store(top: &mut Table<'_, '_>) -> Option<Text> {
    match top.peek("store") {
        Some(store) if !has_userinfo(store) => top.text("store"),
        _ => top.secret("store"),
    }
}

fn admin(mut table: Table<'_, '_>) -> Option<Text> {
    let token = table.secret_or_unset("token");
    table.finish(&[]);
    token
}

fn limits(mut table: Table<'_, '_>) -> RawLimits {
    let limits = RawLimits {
        body_size: table.text("body_size"),
        connections: table.number("connections"),
        inflight: table.text("inflight"),
        header_timeout: table.text("header_timeout"),
        body_timeout: table.text("body_timeout"),
        lease: table.text("lease"),
    };
    table.finish(&[]);
    limits
}

fn source(scan: &Scan<'_>, mut table: Table<'_, '_>, scope: Scope<'_>) -> RawSource {
    let (payload, ledger, identity) = match table.table("retain", "retain") {
        Some(mut retain) => {
            let spans = (
                retain.text("payload"),
                retain.text("ledger"),
                retain.text("identity"),
            );
            retain.finish(&[]);
            spans
        }
        None => (None, None, None),
    };
    let needed = ["name", "provider", "secrets", "verify", "reconcile"].into_iter();
    let there: Vec<&str> = needed.filter(|name| table.has(name)).collect();
    let mut source = RawSource {
        at: table.at(),
        meant: there,
        name: table.text("name"),
        provider: table.text("provider"),
        secrets: table.secrets("secrets"),
        verify_token: table.secret("verify_token"),
        key: table.texts("key"),
        event_type: table.text("type"),
        id: table.text("id"),
        entity: table.text("entity"),
        payload,
        ledger,
        identity,
        retry_window: table.text("retry_window"),
        volatile: table.texts("volatile"),
        trust_unsigned_id: table.flag("trust_unsigned_id").unwrap_or(false),
        verify: table.value("verify").map(|value| spec::read(scan, value)),
        order: table.table("order", "order").map(effect::order),
        reconcile: match scope {
            Scope::Whole => table.table("reconcile", "reconcile").map(effect::reconcile),
            // Whoever only sends or verifies need not have the secrets of the source of truth.
            Scope::Source(_) => {
                table.value("reconcile");
                None
            }
        },
        on_duplicate_of_failed: table.text("on_duplicate_of_failed"),
    };
    source.meant.extend(table.finish(&[]));
    source
}
