-- The first shape of the store. Every table on the accept path is append-ordered: its primary key is a number that
-- only grows, and it has no secondary index that an event enters when it is accepted, unless it waits for a person. Uniqueness of keys is decided by the writer against the key index
-- beside this file, which is derived from `event` and `effect` and can be rebuilt from them.

-- One row per business fact: event, identity and first delivery in one, since they are born together.
-- When its bytes are reaped the row stays as the tombstone; when its identity has expired it goes.
CREATE TABLE event (
    seq               INTEGER PRIMARY KEY,
    at                INTEGER NOT NULL,
    source            TEXT    NOT NULL,
    type              TEXT,
    key               TEXT    NOT NULL,
    key_hash          BLOB    NOT NULL,
    key_origin        INTEGER NOT NULL,
    body_hash         BLOB    NOT NULL,
    compare_hash      BLOB,               -- NULL: the same as body_hash
    provider_event_id TEXT,
    object_id         TEXT,
    entity            TEXT,
    version           TEXT,
    status            INTEGER NOT NULL,
    review_code       TEXT,
    review_message    TEXT,
    outcome           INTEGER NOT NULL,   -- of the first delivery, as are the next four
    scheme            TEXT    NOT NULL,
    secret_index      INTEGER,
    signed_at         INTEGER,
    remote            TEXT,
    retry_window      INTEGER NOT NULL,
    expires_at        INTEGER NOT NULL,   -- of the identity
    payload_until     INTEGER NOT NULL,   -- the lowest number there is: erased
    ledger_until      INTEGER NOT NULL    -- of later deliveries, attempts and runs; the lowest number there is: reaped
) STRICT;

-- For lists of what was given up and what waits for a person. An event that goes well is never in it.
CREATE INDEX event_waiting ON event (status, seq) WHERE (status = 4 OR status = 5);

-- The bytes as they came. Apart from `event`, so that lists stay narrow and reaping frees whole pages.
CREATE TABLE payload (
    seq          INTEGER PRIMARY KEY,     -- event.seq
    content_type TEXT,
    body         BLOB NOT NULL
) STRICT;

-- Every delivery but the first, in the order they came. Each names the one before it of the same event; which one is
-- the latest is in the key index, so that a duplicate touches the end of this table and nothing else.
CREATE TABLE delivery (
    seq          INTEGER PRIMARY KEY,
    event        INTEGER NOT NULL,        -- event.seq
    previous     INTEGER,                 -- delivery.seq
    n            INTEGER NOT NULL,        -- 1 is the second delivery
    at           INTEGER NOT NULL,
    outcome      INTEGER NOT NULL,
    conflict     INTEGER NOT NULL,
    conflicts    INTEGER NOT NULL,        -- so far, this one included
    body_hash    BLOB    NOT NULL,
    scheme       TEXT    NOT NULL,
    secret_index INTEGER,
    signed_at    INTEGER,
    remote       TEXT,
    body         BLOB,                    -- of a conflict, up to a limit
    decided      INTEGER,                 -- of a conflict: 0 acknowledged, 1 promoted; NULL: nobody has decided
    promoted     BLOB                     -- the id of the event that it became
) STRICT;

-- What this file is: its id, and the epoch that rises at every start.
CREATE TABLE store (
    one      INTEGER PRIMARY KEY CHECK (one = 1),
    store_id BLOB    NOT NULL,
    epoch    INTEGER NOT NULL,
    mark     BLOB    NOT NULL,
    admin_token_hash BLOB,
    copied   INTEGER NOT NULL DEFAULT 0   -- 1: a backup, which nobody has opened since it was made
) STRICT;

-- One row per effect. Its number is its event's with 16 bits for the place in the plan, so that the effects of an event
-- stand together without an index. An attempt that is under way is part of the row, and so is the latest that has ended: mostly
-- there is but one, and a row of its own would cost as much as all else that a settlement writes.
CREATE TABLE effect (
    seq           INTEGER PRIMARY KEY,
    at            INTEGER NOT NULL,       -- of its event
    name          TEXT    NOT NULL,
    key           TEXT    NOT NULL,
    key_hash      BLOB    NOT NULL,
    lane          TEXT    NOT NULL,
    attempts_max  INTEGER NOT NULL,
    repeat        INTEGER NOT NULL,       -- from here on: the ledger's EffectRecord
    state         INTEGER NOT NULL,
    generation    INTEGER NOT NULL,
    attempts      INTEGER NOT NULL,
    pass_from     INTEGER NOT NULL,
    fence         INTEGER NOT NULL,
    lease_until   INTEGER NOT NULL,
    next_at       INTEGER NOT NULL,
    started       INTEGER NOT NULL,
    ambiguous     INTEGER NOT NULL,
    skip          INTEGER,
    node          TEXT,                   -- of the latest claim
    started_at    INTEGER,                -- of the attempt under way
    gate          INTEGER NOT NULL,       -- 0: may be claimed, as far as others are concerned
    joined        INTEGER,                -- its number among those whose event was there before them; NULL: planned with it
    after         BLOB,                   -- effect.seq of those that come first, 8 bytes each; NULL: none
    last_fence    INTEGER,                -- of the latest attempt that has ended, as all last_: the columns of `attempt`
    last_generation INTEGER,
    last_number   INTEGER,
    last_node     TEXT,
    last_started_at INTEGER,
    last_ended_at INTEGER,
    last_outcome  INTEGER,
    last_detail   INTEGER,
    last_retry_after INTEGER,
    last_excerpt  BLOB,
    last_body_bytes INTEGER,
    last_error    TEXT,
    last_late_at  INTEGER,
    last_late_outcome INTEGER,
    last_late_detail INTEGER,
    chain         BLOB,                   -- chain.hash; NULL, as is all below, without an order
    entity        TEXT,
    serial        INTEGER,
    version       TEXT,
    life_step     INTEGER,
    snapshot      INTEGER,
    review        INTEGER,
    ended_by      TEXT,                   -- the type that had ended the entity before this effect was accepted
    released      INTEGER                 -- a person has looked and let it go ahead
) STRICT;

-- What waits for its time, lane by lane, and what is held. An effect that is born claimed is only ever in the second, and that
-- grows at its end: times rise.
CREATE INDEX effect_due ON effect (lane, next_at) WHERE state = 0 AND gate = 0;
CREATE INDEX effect_held ON effect (lease_until) WHERE state = 1;
-- For counts and lists of what waits, is uncertain or dead: few, whatever has been done. Written with OR, since a list of three
-- would be made a temporary table whenever an effect is written.
CREATE INDEX effect_unended ON effect (state, seq) WHERE (state = 0 OR state = 3 OR state = 4);
-- For order: those of an entity that have not ended.
CREATE INDEX effect_chain ON effect (chain, seq) WHERE chain IS NOT NULL AND (state = 0 OR state = 1 OR state = 3);

-- For the key index: it reads the keys of effects with their events, and of those that came later by this.
CREATE INDEX effect_joined ON effect (joined) WHERE joined IS NOT NULL;

-- What is known of an entity, for one effect name: born with the first of its effects and gone with the last.
CREATE TABLE chain (
    hash       BLOB    PRIMARY KEY,       -- of effect name and entity
    members    INTEGER NOT NULL,          -- so many effects belong to it
    version    TEXT,                      -- the highest that was started
    started    INTEGER,                   -- effect.seq of the last accepted of those that were started
    started_at INTEGER,                   -- effect.at of that one: it is part of its id
    ended_by   TEXT                       -- the type that ended the entity, unless one has reopened it
) STRICT, WITHOUT ROWID;

-- What went along with an effect's attempts.
CREATE TABLE snapshot (
    effect INTEGER PRIMARY KEY,           -- effect.seq
    body   BLOB NOT NULL
) STRICT;

-- Events that call for an effect which another event called for first.
CREATE TABLE effect_link (
    effect INTEGER NOT NULL,              -- effect.seq
    event  INTEGER NOT NULL,              -- event.seq
    PRIMARY KEY (effect, event)
) STRICT, WITHOUT ROWID;
CREATE INDEX effect_link_event ON effect_link (event);

-- Attempts that have ended, but for the latest of each effect. A claim makes at most one, so its fence names it.
CREATE TABLE attempt (
    effect       INTEGER NOT NULL,        -- effect.seq
    fence        INTEGER NOT NULL,
    generation   INTEGER NOT NULL,
    number       INTEGER NOT NULL,
    node         TEXT    NOT NULL,
    started_at   INTEGER NOT NULL,
    ended_at     INTEGER NOT NULL,
    outcome      INTEGER NOT NULL,
    detail       INTEGER NOT NULL,
    retry_after  INTEGER,
    excerpt      BLOB,                    -- of the answer's body
    body_bytes   INTEGER,                 -- of the whole of it
    error        TEXT,
    late_at      INTEGER,                 -- what its worker said after somebody else had taken over
    late_outcome INTEGER,
    late_detail  INTEGER,
    PRIMARY KEY (effect, fence)
) STRICT, WITHOUT ROWID;

-- Passes over an event that somebody asked for.
CREATE TABLE run (
    event    INTEGER NOT NULL,            -- event.seq
    n        INTEGER NOT NULL,            -- in the order in which they were asked for
    id       BLOB    NOT NULL,
    kind     INTEGER NOT NULL,
    actor    TEXT    NOT NULL,
    reason   TEXT    NOT NULL,
    at       INTEGER NOT NULL,
    parent   BLOB    NOT NULL,            -- run.id, or the event's initial run
    snapshot BLOB,                        -- what the source of truth said
    PRIMARY KEY (event, n)
) STRICT, WITHOUT ROWID;

-- Who decided what. Each hash covers the record and the hash before it; nothing is ever changed or deleted here.
CREATE TABLE audit (
    seq         INTEGER PRIMARY KEY,
    at          INTEGER NOT NULL,
    actor       TEXT    NOT NULL,
    action      TEXT    NOT NULL,
    subject     TEXT    NOT NULL,
    reason      TEXT    NOT NULL,
    detail      TEXT    NOT NULL,
    previous    BLOB    NOT NULL,
    hash        BLOB    NOT NULL,
    event       BLOB,                     -- the id of the event that it was a command about
    request     BLOB,                     -- the hash of who asked and their Idempotency-Key
    fingerprint BLOB                      -- the hash of what was asked
) STRICT;
CREATE INDEX audit_event ON audit (event, seq) WHERE event IS NOT NULL;
CREATE INDEX audit_actor ON audit (actor, seq);
CREATE UNIQUE INDEX audit_request ON audit (request) WHERE request IS NOT NULL;

CREATE TABLE token (
    id           BLOB    PRIMARY KEY,
    name         TEXT    NOT NULL,
    role         INTEGER NOT NULL,
    app          TEXT,
    hash         BLOB    NOT NULL,        -- of its secret
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER,
    last_used_at INTEGER,
    revoked_at   INTEGER
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX token_name ON token (name) WHERE revoked_at IS NULL;

-- Replays of many events. The columns from `source` to `until` are its filter; what is NULL does not narrow.
CREATE TABLE replay (
    id         BLOB    PRIMARY KEY,
    source     TEXT,
    type       TEXT,
    status     INTEGER,
    key        TEXT,
    entity     TEXT,
    since      INTEGER,
    until      INTEGER,
    actor      TEXT    NOT NULL,
    reason     TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    dry_run    INTEGER NOT NULL,
    rate       INTEGER,
    state      INTEGER NOT NULL,
    after      BLOB,                      -- the id of the last event that was looked at
    total      INTEGER NOT NULL,
    done       INTEGER NOT NULL,
    skipped    INTEGER NOT NULL,
    blocked    INTEGER NOT NULL,
    failed     INTEGER NOT NULL,
    task       TEXT,                      -- JSON, of what is not a replay of events
    found      TEXT                       -- JSON, of what finds something out. Last: lists do not read it
) STRICT, WITHOUT ROWID;

-- Keys of guarded requests, one row per key: a key that is claimed anew after it was released or forgotten keeps its row. Append-ordered
-- like `event`: that a key has one row is decided by the writer against the key index.
CREATE TABLE guard_key (
    seq         INTEGER PRIMARY KEY,
    first_at    INTEGER NOT NULL,         -- part of its id
    guard       TEXT    NOT NULL,         -- of the latest run, as is all below but the hash and `runs`
    principal   TEXT    NOT NULL,
    method      TEXT    NOT NULL,
    path        TEXT    NOT NULL,
    key         TEXT    NOT NULL,
    key_hash    BLOB    NOT NULL,
    node        TEXT    NOT NULL,
    runs        INTEGER NOT NULL,
    started_at  INTEGER NOT NULL,
    -- Of the next two the lowest number of their width says that there is none: so a run that ends writes over its row, which stays as long
    -- as it was. In a page that is full a longer one would push its neighbours into others.
    ended_at    INTEGER NOT NULL,
    status      INTEGER NOT NULL,
    error       TEXT,
    state       INTEGER NOT NULL,         -- from here on: the ledger's GuardRecord
    fingerprint BLOB    NOT NULL,
    fence       INTEGER NOT NULL,
    lease_until INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL,
    grace       INTEGER NOT NULL
) STRICT;

-- For lists of what is running or unknown, and for the sweep of what was lost: few, whatever has been answered. One each, so that a run that
-- ends well touches one of them only.
CREATE INDEX guard_key_running ON guard_key (seq) WHERE state = 0;
CREATE INDEX guard_key_unknown ON guard_key (seq) WHERE state = 3;

-- What a retry is answered with, sealed by the guard. Apart, so that lists stay narrow and reaping frees whole pages.
CREATE TABLE guard_answer (
    seq    INTEGER PRIMARY KEY,           -- guard_key.seq
    answer BLOB NOT NULL
) STRICT;

-- The highest number of a key that is gone. Without it a key index that has read further than the last row would look as if the file
-- had been put back, whenever the last keys have been reaped.
CREATE TABLE guard_reaped (
    one  INTEGER PRIMARY KEY CHECK (one = 1),
    last INTEGER NOT NULL
) STRICT;
-- The outbox. Its catalogue is small and changed by people; every change raises the revision, in the same transaction.
CREATE TABLE catalogue (
    one      INTEGER PRIMARY KEY CHECK (one = 1),
    revision INTEGER NOT NULL
) STRICT;
INSERT INTO catalogue (one, revision) VALUES (1, 0);

CREATE TABLE app (
    id            BLOB    PRIMARY KEY,
    uid           TEXT,
    name          TEXT    NOT NULL,
    throttle_rate INTEGER,
    metadata      TEXT    NOT NULL,       -- JSON, as is all below that is a list or a map
    extra         TEXT    NOT NULL,
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,
    deleted_at    INTEGER,
    revision      INTEGER NOT NULL        -- that made it what it is
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX app_uid ON app (uid) WHERE uid IS NOT NULL AND deleted_at IS NULL;
CREATE INDEX app_revision ON app (revision);
CREATE INDEX app_deleted ON app (deleted_at) WHERE deleted_at IS NOT NULL;

CREATE TABLE endpoint (
    id            BLOB    PRIMARY KEY,
    app           BLOB    NOT NULL,
    uid           TEXT,
    url           TEXT    NOT NULL,
    description   TEXT    NOT NULL,
    event_types   TEXT    NOT NULL,
    channels      TEXT    NOT NULL,
    throttle_rate INTEGER,
    metadata      TEXT    NOT NULL,
    sealed        BLOB    NOT NULL,       -- headers and secrets, as the outbox has sealed them
    extra         TEXT    NOT NULL,
    standing      INTEGER NOT NULL,
    failing_since INTEGER,
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,
    deleted_at    INTEGER,
    revision      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX endpoint_uid ON endpoint (app, uid) WHERE uid IS NOT NULL AND deleted_at IS NULL;
CREATE INDEX endpoint_app ON endpoint (app);
CREATE INDEX endpoint_revision ON endpoint (revision);
CREATE INDEX endpoint_deleted ON endpoint (deleted_at) WHERE deleted_at IS NOT NULL;

-- One row per name: a deleted one's is taken over by the next of its name.
CREATE TABLE event_type (
    name          TEXT    PRIMARY KEY,
    description   TEXT    NOT NULL,
    archived      INTEGER NOT NULL,
    deprecated    INTEGER NOT NULL,
    group_name    TEXT,
    feature_flags TEXT    NOT NULL,
    schemas       TEXT,
    extra         TEXT    NOT NULL,
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,
    deleted_at    INTEGER,
    revision      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX event_type_revision ON event_type (revision);
CREATE INDEX event_type_deleted ON event_type (deleted_at) WHERE deleted_at IS NOT NULL;

-- What its publisher said about a message, beside what its event has: born and gone with the event. An application's messages stand
-- together, which is how they are listed; whoever has an event knows the application by its source.
CREATE TABLE message (
    app          BLOB    NOT NULL,
    seq          INTEGER NOT NULL,        -- event.seq
    channels     TEXT,                    -- NULL: none
    tags         TEXT,                    -- NULL: none
    deliver_at   INTEGER,
    api_version  TEXT,
    ordering_key TEXT,
    sequence_key TEXT,
    sequence     INTEGER,
    turn         INTEGER,                 -- of one that was to be sent later, among those of its application, for those who ask
    PRIMARY KEY (app, seq)
) STRICT, WITHOUT ROWID;
-- Messages that are to be sent later: those that have no turn yet, and those that have. Others are in neither.
CREATE INDEX message_later ON message (app, deliver_at) WHERE deliver_at IS NOT NULL AND turn IS NULL;
CREATE INDEX message_turn ON message (app, turn) WHERE turn IS NOT NULL;

-- The latest turn that was given. Goes with the application.
CREATE TABLE turn (
    app  BLOB    PRIMARY KEY,
    last INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- How far those have read who ask for messages.
CREATE TABLE consumer (
    endpoint BLOB    NOT NULL,
    name     TEXT    NOT NULL,
    at_once  BLOB    NOT NULL,            -- the id of the last message that was sent at once
    later    INTEGER NOT NULL,            -- the turn of the last that was sent later
    since    INTEGER,                     -- only what is not before this
    seen_at  INTEGER NOT NULL,
    PRIMARY KEY (endpoint, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX consumer_seen ON consumer (seen_at);

-- The latest number that messages of an application have under a key. Goes with the application.
CREATE TABLE number (
    app  BLOB    NOT NULL,
    key  TEXT    NOT NULL,
    last INTEGER NOT NULL,
    PRIMARY KEY (app, key)
) STRICT, WITHOUT ROWID;

-- Messages whose deliveries are not all made. The list is apart, so that a step rewrites a narrow row.
CREATE TABLE fan_out (
    seq      INTEGER PRIMARY KEY,         -- event.seq
    source   TEXT    NOT NULL,
    entity   TEXT,                        -- that the deliveries are ordered by; NULL: they are not
    template TEXT    NOT NULL,            -- what all deliveries have in common, as JSON
    made     INTEGER NOT NULL,            -- so many of the list
    total    INTEGER NOT NULL
) STRICT;
CREATE INDEX fan_out_order ON fan_out (source, entity) WHERE entity IS NOT NULL;
CREATE TABLE fan_out_list (
    seq   INTEGER PRIMARY KEY,            -- event.seq
    later BLOB NOT NULL                   -- endpoints and attempts, 20 bytes each
) STRICT;

-- Deliveries by endpoint. Other lanes are called otherwise, and have no part in it.
CREATE INDEX effect_posted ON effect (lane, seq) WHERE lane >= 'ep_' AND lane < 'ep`';
-- What waits for its turn, by lane: with `effect_due` all that waits.
CREATE INDEX effect_behind ON effect (lane) WHERE state = 0 AND gate <> 0;

-- What attempts to endpoints came to, by lane and hour.
CREATE TABLE tally (
    lane   TEXT    NOT NULL,
    hour   INTEGER NOT NULL,              -- when it began
    done   INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    dead   INTEGER NOT NULL,
    PRIMARY KEY (lane, hour)
) STRICT, WITHOUT ROWID;
CREATE INDEX tally_hour ON tally (hour);

-- Secrets, sealed with a key that is not in here.
CREATE TABLE secret (
    place  TEXT    PRIMARY KEY,           -- what it belongs to; it opens nowhere else
    sealed BLOB    NOT NULL,
    at     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
