//! Effects, order and the source of truth as they are written.

use crate::config::scan::{At, Text};
use crate::config::table::{Named, Number, Table, Texts, WordOrTable};

/// `[[effect]]`.
#[derive(Debug)]
pub(in crate::config) struct RawEffect {
    pub(super) at: At,
    /// Fields that are there, wrong or misspelt as they may be: that they are missing would be said in vain.
    pub(super) meant: Vec<&'static str>,
    pub(super) name: Option<Text>,
    pub(super) source: Option<Text>,
    pub(super) types: Option<Texts>,
    pub(super) when: Option<Text>,
    pub(super) key: Option<Text>,
    pub(super) repeat: Option<Text>,
    pub(super) url: Option<Text>,
    pub(super) after: Option<Texts>,
    pub(super) order: Option<RawEffectOrder>,
    pub(super) body: Option<Text>,
    pub(super) timeout: Option<Text>,
    pub(super) retry: Option<Texts>,
    pub(super) concurrency: Option<Number>,
    pub(super) rate: Option<Number>,
    pub(super) probe: Option<Text>,
    pub(super) headers: Option<Named>,
    pub(super) secret: Option<Text>,
}

/// `order` of an effect.
#[derive(Debug)]
pub(in crate::config) enum RawEffectOrder {
    /// `"source"` or `"off"`.
    Word(Text),
    /// An order of its own.
    Own(Box<RawOrder>),
}

/// A table that declares order.
#[derive(Debug)]
pub(in crate::config) struct RawOrder {
    pub(super) at: At,
    /// Is something in it that could not be read? Then nobody is told that it declares nothing.
    pub(super) misread: bool,
    pub(super) serial: Option<bool>,
    pub(super) version: Option<Text>,
    pub(super) terminal: Option<Texts>,
    pub(super) reopen: Option<Texts>,
    pub(super) snapshot: Option<bool>,
    pub(super) review: Option<Text>,
}

/// `reconcile` of a source.
#[derive(Debug)]
pub(in crate::config) struct RawReconcile {
    pub(super) at: At,
    pub(super) meant: Vec<&'static str>,
    pub(super) url: Option<Text>,
    pub(super) headers: Option<Named>,
}

/// Reads one `[[effect]]`.
pub(in crate::config) fn effect(mut table: Table<'_, '_>) -> RawEffect {
    let needed = ["name", "source", "url"].into_iter();
    let there: Vec<&str> = needed.filter(|name| table.has(name)).collect();
    let mut effect = RawEffect {
        at: table.at(),
        meant: there,
        name: table.text("name"),
        source: table.text("source"),
        types: table.texts("types"),
        when: table.text("when"),
        key: table.text("key"),
        repeat: table.text("repeat"),
        url: table.url("url"),
        after: table.texts("after"),
        order: effect_order(&mut table),
        body: table.text("body"),
        timeout: table.text("timeout"),
        retry: table.texts("retry"),
        concurrency: table.number("concurrency"),
        rate: table.number("rate"),
        probe: table.url("probe"),
        headers: headers(&mut table),
        secret: table.secret("secret"),
    };
    effect.meant.extend(table.finish(&[]));
    effect
}

fn effect_order(table: &mut Table<'_, '_>) -> Option<RawEffectOrder> {
    let remedy = "write order = \"source\", \"off\" or { serial = true }";
    Some(match table.word_or_table("order", remedy)? {
        WordOrTable::Word(word) => RawEffectOrder::Word(word),
        WordOrTable::Table(own) => RawEffectOrder::Own(Box::new(order(own))),
    })
}

/// Reads a table that declares order.
pub(in crate::config) fn order(mut table: Table<'_, '_>) -> RawOrder {
    let there = ["serial", "version", "snapshot", "review"].into_iter();
    let there = there.filter(|name| table.has(name)).count();
    let mut order = RawOrder {
        at: table.at(),
        misread: false,
        serial: table.flag("serial"),
        version: table.text("version"),
        terminal: table.texts("terminal"),
        reopen: table.texts("reopen"),
        snapshot: table.flag("snapshot"),
        review: table.text("review"),
    };
    let flags = [order.serial, order.snapshot].iter().flatten().count();
    let texts = [&order.version, &order.review]
        .into_iter()
        .flatten()
        .count();
    order.misread = !table.finish(&[]).is_empty() || flags + texts < there;
    order
}

/// Reads `reconcile`.
pub(in crate::config) fn reconcile(mut table: Table<'_, '_>) -> RawReconcile {
    let mut reconcile = RawReconcile {
        at: table.at(),
        meant: table.has("url").then_some("url").into_iter().collect(),
        url: table.url("url"),
        headers: headers(&mut table),
    };
    reconcile.meant.extend(table.finish(&[]));
    reconcile
}

fn headers(table: &mut Table<'_, '_>) -> Option<Named> {
    table.table("headers", "headers").map(Table::named_secrets)
}
