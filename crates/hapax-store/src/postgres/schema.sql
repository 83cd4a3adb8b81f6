-- The first shape of the store. `shard` (of 64, by the hash of scope and key) is part of every key, so that the same tables run on
-- partitioned PostgreSQL and on relatives that distribute rows by a column: those want it in every unique key, wherever it stands.
-- Where ids are asked for one by one, the id leads: ids sort by time, so such an index grows at its one right edge, and not at 64.
-- Where the hash of a key is unique it leads, since it alone tells nearly any two keys apart.
--
-- Whoever needs several locks takes them in this order, and rows of one table by key or id: identity, effect, chain, queue, event,
-- delivery, the head of the audit log, token, replay, secret. Two go another way and never wait: the reaper, and whoever opens the gate of
-- an effect that waited for the one it moved. Where the second finds such a row held, its holder looks at the gate itself before it
-- lets go (see status.rs).

-- One row per business fact, with its first delivery, since they are born together. When its bytes are reaped the row stays as
-- the tombstone; when its identity has expired it goes. Fixed-size columns first: no padding between them.
CREATE TABLE hapax.event (
    at                bigint   NOT NULL,
    expires_at        bigint   NOT NULL,   -- of the identity
    payload_until     bigint   NOT NULL,   -- here and not with the bytes, so that the reaper need not visit them; the lowest
                                           -- number there is: erased
    ledger_until      bigint   NOT NULL,   -- of later deliveries, attempts and runs; the lowest number there is: reaped
    retry_window      bigint   NOT NULL,
    id                uuid     NOT NULL,
    key_hash          uuid     NOT NULL,
    shard             smallint NOT NULL,
    status            smallint NOT NULL,
    key_origin        smallint NOT NULL,
    outcome           smallint NOT NULL,   -- of the first delivery
    secret_index      smallint,            -- of the first delivery, as are scheme, signed_at and remote
    signed_at         bigint,
    body_hash         bytea    NOT NULL,
    compare_hash      bytea,               -- NULL: the same as body_hash
    source            text     COLLATE "C" NOT NULL,
    key               text     COLLATE "C" NOT NULL,
    type              text     COLLATE "C",
    scheme            text     COLLATE "C" NOT NULL,
    remote            text     COLLATE "C",
    provider_event_id text     COLLATE "C",
    object_id         text     COLLATE "C",
    entity            text     COLLATE "C",
    version           text     COLLATE "C",
    review_code       text     COLLATE "C",
    review_message    text     COLLATE "C",
    -- The status, of what was given up or waits for a person. For an index that an event which goes well is never in, and which does
    -- not know the status itself: so a change of it still touches no index.
    waiting           smallint GENERATED ALWAYS AS (CASE WHEN status IN (4, 5) THEN status END) STORED,
    CONSTRAINT event_pk PRIMARY KEY (shard, id)
)
-- Mostly its status changes once, soon after, and together with that of those that were accepted with it: with room in its page for all of
-- them that touches no index.
WITH (fillfactor = 50);
-- For lists: ids sort by time, so this grows at its right edge only.
CREATE INDEX event_by_id ON hapax.event (id);
CREATE INDEX event_waiting ON hapax.event (waiting, id) WHERE waiting IS NOT NULL;

-- Who holds a key. Only the key and its holder: all else is said once, in `event`, and the one index that is not
-- append-ordered stays small. Whoever changes anything about an event's deliveries or expiry holds this row's lock.
CREATE TABLE hapax.identity (
    key_hash uuid     NOT NULL,
    event    uuid     NOT NULL,
    shard    smallint NOT NULL,
    source   text     COLLATE "C" NOT NULL,
    CONSTRAINT identity_pk PRIMARY KEY (key_hash, shard, source)
);

-- The bytes as they came. Apart from `event`, so that lists stay narrow and reaping is a plain delete.
CREATE TABLE hapax.payload (
    event        uuid     NOT NULL,
    shard        smallint NOT NULL,
    content_type text     COLLATE "C",
    body         bytea    NOT NULL,
    CONSTRAINT payload_pk PRIMARY KEY (event, shard)
)
-- Bodies of up to a page stay in their row, uncompressed: compressing costs more than all else that an accept does.
WITH (toast_tuple_target = 8160);
ALTER TABLE hapax.payload ALTER COLUMN body SET STORAGE EXTERNAL;

-- Every delivery but the first.
CREATE TABLE hapax.delivery (
    at           bigint   NOT NULL,
    event        uuid     NOT NULL,
    n            integer  NOT NULL,        -- 1 is the second delivery
    conflicts    integer  NOT NULL,        -- so far, this one included
    shard        smallint NOT NULL,
    outcome      smallint NOT NULL,
    conflict     boolean  NOT NULL,
    decided      smallint,                 -- of a conflict: what somebody decided about it
    secret_index smallint,
    signed_at    bigint,
    promoted     uuid,                     -- the event that it became then
    body_hash    bytea    NOT NULL,
    scheme       text     COLLATE "C" NOT NULL,
    remote       text     COLLATE "C",
    body         bytea,                    -- of a conflict, up to a limit
    CONSTRAINT delivery_pk PRIMARY KEY (shard, event, n)
);

-- What never changes about an effect. Its shard is the hash of name and key, whichever event calls for it, so that the key is
-- unique over all events; the hash covers the name. The row's lock is the right to link the effect to one more event.
CREATE TABLE hapax.effect (
    id           uuid     NOT NULL,
    event        uuid     NOT NULL,        -- that called for it first
    key_hash     uuid     NOT NULL,
    attempts_max integer  NOT NULL,
    place        integer  NOT NULL,        -- in that event's plan
    shard        smallint NOT NULL,
    event_shard  smallint NOT NULL,
    queue_shard  smallint NOT NULL,        -- of its lane: where its row in `queue` is
    order_rule   smallint,                 -- NULL: it has no order
    name         text     COLLATE "C" NOT NULL,
    key          text     COLLATE "C" NOT NULL,
    lane         text     COLLATE "C" NOT NULL,
    after        bytea,                    -- places in that event's plan of what must be done first, two bytes each
    entity       text     COLLATE "C",     -- that its order is about
    version      text     COLLATE "C",
    CONSTRAINT effect_pk PRIMARY KEY (id, shard),
    CONSTRAINT effect_key UNIQUE (key_hash, shard)
);
-- The effects of an event. Ids sort by time, so this grows at its right edge only.
CREATE INDEX effect_by_event ON hapax.effect (event);

-- All that changes about an effect: the ledger's record, and who holds it. One row each, born and gone with its effect; narrow,
-- since every claim and every move writes it anew. In the shard of its lane, so that a claim names one shard. Its lock is the
-- right to move the effect.
CREATE TABLE hapax.queue (
    effect           uuid     NOT NULL,
    event            uuid     NOT NULL,    -- that called for it first, as in `effect`: whoever settles it need not look there
    fence            bigint   NOT NULL,
    lease_until      bigint   NOT NULL,
    next_at          bigint   NOT NULL,
    generation       integer  NOT NULL,
    attempts         integer  NOT NULL,
    pass_from        integer  NOT NULL,
    shard            smallint NOT NULL,
    event_shard      smallint NOT NULL,
    state            smallint NOT NULL,
    gate             smallint NOT NULL,
    repeat           smallint NOT NULL,
    started          boolean  NOT NULL,
    ambiguous        boolean  NOT NULL,
    released         boolean  NOT NULL DEFAULT false,  -- a person let it go ahead, whatever its order says
    alone            boolean  NOT NULL,    -- all that its event calls for, and nobody else does; see happy.rs
    skip             smallint,
    last_outcome     smallint,             -- of the latest attempt that has ended
    last_detail      smallint,
    chain_shard      smallint,
    last_retry_after bigint,
    started_at       bigint,               -- of the attempt under way, or of the latest
    turn             bigint,               -- in its chain
    chain            uuid,
    lane             text     COLLATE "C" NOT NULL,
    node             text     COLLATE "C", -- of the latest claim
    ended_by         text     COLLATE "C", -- the type that had ended its entity when it was accepted
    CONSTRAINT queue_pk PRIMARY KEY (effect, shard)
);
-- What waits for its time, and what is held: small, whatever has ended. An effect that is born claimed and goes well is in the
-- second only.
CREATE INDEX queue_due ON hapax.queue (shard, lane, next_at, effect) WHERE state = 0 AND gate = 0;
CREATE INDEX queue_held ON hapax.queue (shard, lease_until) WHERE state = 1;
-- For lists and counts of what has not ended well.
CREATE INDEX queue_by_state ON hapax.queue (state, effect) WHERE state IN (0, 3, 4);
-- Who is next in a chain.
CREATE INDEX queue_by_turn ON hapax.queue (chain, turn) WHERE chain IS NOT NULL AND state IN (0, 1, 3);

-- What is known of one entity of one effect's name, as far as order needs it. In the shard of its own hash; goes with the last of
-- its effects. Its lock is the right to add to the chain, to start or end one of its effects, and to bring one back.
CREATE TABLE hapax.chain (
    chain          uuid     NOT NULL,      -- the hash of name and entity
    next_turn      bigint   NOT NULL,
    started_turn   bigint,                 -- the highest that was started, and its effect
    started_effect uuid,
    effects        integer  NOT NULL,      -- that belong to it
    shard          smallint NOT NULL,
    name           text     COLLATE "C" NOT NULL,
    entity         text     COLLATE "C" NOT NULL,
    version        text     COLLATE "C",   -- the highest that was started
    ended_by       text     COLLATE "C",   -- the type that ended the entity
    CONSTRAINT chain_pk PRIMARY KEY (shard, chain)
);

-- The state of the entity as it was fetched, for effects that send it along; in the shard of the effect.
CREATE TABLE hapax.snapshot (
    effect uuid     NOT NULL,
    shard  smallint NOT NULL,
    body   bytea    NOT NULL,
    CONSTRAINT snapshot_pk PRIMARY KEY (shard, effect)
);

-- Events that call for an effect which another event called for first; in the event's shard.
CREATE TABLE hapax.effect_link (
    event        uuid     NOT NULL,
    effect       uuid     NOT NULL,
    place        integer  NOT NULL,        -- in the plan of `event`
    shard        smallint NOT NULL,
    effect_shard smallint NOT NULL,
    queue_shard  smallint NOT NULL,
    CONSTRAINT effect_link_pk PRIMARY KEY (shard, event, effect)
);
CREATE INDEX effect_link_by_effect ON hapax.effect_link (effect);

-- Attempts that have ended; one that is under way is part of its queue row. A claim makes at most one, so its fence names it.
CREATE TABLE hapax.attempt (
    effect       uuid     NOT NULL,
    fence        bigint   NOT NULL,
    started_at   bigint   NOT NULL,
    ended_at     bigint   NOT NULL,
    generation   integer  NOT NULL,
    number       integer  NOT NULL,
    shard        smallint NOT NULL,        -- of the effect
    outcome      smallint NOT NULL,
    detail       smallint NOT NULL,
    late_outcome smallint,                 -- what its worker said after somebody else had taken over
    late_detail  smallint,
    late_at      bigint,
    retry_after  bigint,
    body_bytes   bigint,                   -- of the whole answer
    node         text     COLLATE "C" NOT NULL,
    error        text     COLLATE "C",
    excerpt      bytea,                    -- the beginning of the answer
    CONSTRAINT attempt_pk PRIMARY KEY (effect, fence, shard)
);

-- Passes over an event that somebody asked for, in the order in which they did; in the event's shard, and gone with it. Whoever adds
-- one holds the event's lock.
CREATE TABLE hapax.run (
    id       uuid     NOT NULL,
    event    uuid     NOT NULL,
    parent   uuid     NOT NULL,            -- the run before it; the event's own id for the one that every event begins with
    at       bigint   NOT NULL,
    n        integer  NOT NULL,            -- 1 is the first
    shard    smallint NOT NULL,
    kind     smallint NOT NULL,
    actor    text     COLLATE "C" NOT NULL,
    reason   text     COLLATE "C" NOT NULL,
    snapshot bytea,                        -- what the source of truth said, of a reconcile
    CONSTRAINT run_pk PRIMARY KEY (shard, event, n)
);

-- Who decided what. Its records outlive what they are about. Of this table and those below no key has a shard: people write them, a
-- few a minute, and the log is one chain, so a single place has to give its numbers anyway.
CREATE TABLE hapax.audit (
    seq         bigint NOT NULL,           -- the first is 1, and none is missing
    at          bigint NOT NULL,
    event       uuid,                      -- that the command was about
    request     uuid,                      -- the hash of who asked and their Idempotency-Key
    previous    bytea  NOT NULL,           -- the hash of the record before it
    hash        bytea  NOT NULL,
    fingerprint bytea,                     -- of the request
    actor       text   COLLATE "C" NOT NULL,
    action      text   COLLATE "C" NOT NULL,
    subject     text   COLLATE "C" NOT NULL,
    reason      text   COLLATE "C" NOT NULL,
    detail      text   COLLATE "C" NOT NULL,
    CONSTRAINT audit_pk PRIMARY KEY (seq)
);
CREATE UNIQUE INDEX audit_by_request ON hapax.audit (request) WHERE request IS NOT NULL;
CREATE INDEX audit_by_event ON hapax.audit (event, seq) WHERE event IS NOT NULL;
CREATE INDEX audit_by_actor ON hapax.audit (actor, seq);

-- The last record of the log. Its lock is the right to write the next one, and whoever holds it sees all that were written.
CREATE TABLE hapax.audit_head (
    one  smallint NOT NULL,
    seq  bigint   NOT NULL,
    hash bytea    NOT NULL,
    CONSTRAINT audit_head_pk PRIMARY KEY (one),
    CONSTRAINT audit_head_is_one CHECK (one = 1)
);
INSERT INTO hapax.audit_head (one, seq, hash) VALUES (1, 0, decode(repeat('00', 32), 'hex'));

-- Who may do what.
CREATE TABLE hapax.token (
    id           uuid     NOT NULL,
    created_at   bigint   NOT NULL,
    expires_at   bigint,
    last_used_at bigint,
    revoked_at   bigint,
    role         smallint NOT NULL,
    hash         bytea    NOT NULL,        -- of its secret
    name         text     COLLATE "C" NOT NULL,
    app          text     COLLATE "C",
    CONSTRAINT token_pk PRIMARY KEY (id)
);
CREATE UNIQUE INDEX token_name ON hapax.token (name) WHERE revoked_at IS NULL;

-- Replays of many events: which (the columns that begin with `of_`), and how far each has come.
CREATE TABLE hapax.replay (
    id         uuid     NOT NULL,
    created_at bigint   NOT NULL,
    total      bigint   NOT NULL,
    done       bigint   NOT NULL,
    skipped    bigint   NOT NULL,
    blocked    bigint   NOT NULL,
    failed     bigint   NOT NULL,
    of_since   bigint,
    of_until   bigint,
    rate       bigint,
    after      uuid,                       -- the last event that was looked at
    of_status  smallint,
    state      smallint NOT NULL,
    dry_run    boolean  NOT NULL,
    actor      text     COLLATE "C" NOT NULL,
    reason     text     COLLATE "C" NOT NULL,
    of_source  text     COLLATE "C",
    of_type    text     COLLATE "C",
    of_key     text     COLLATE "C",
    of_entity  text     COLLATE "C",
    task       text     COLLATE "C",       -- JSON, of what is not a replay of events
    found      text     COLLATE "C",       -- JSON, of what finds something out; lists do not read it
    CONSTRAINT replay_pk PRIMARY KEY (id)
);

-- The nodes that are there, and which of them looks after the lanes of which shard. Whoever changes either holds the locks of
-- all rows of `shard`.
CREATE TABLE hapax.node (
    until bigint NOT NULL,
    name  text   COLLATE "C" NOT NULL,
    CONSTRAINT node_pk PRIMARY KEY (name)
);
CREATE TABLE hapax.shard (
    until bigint   NOT NULL,
    shard smallint NOT NULL,
    node  text     COLLATE "C",
    CONSTRAINT shard_pk PRIMARY KEY (shard)
);

-- What this database is. `shards` is fixed for ever: every row was placed by it. `epoch` rises when the store is restored from
-- a backup, so that fences outrun those that the backup does not know. `touched` is what a readiness check writes.
CREATE TABLE hapax.store (
    one         smallint NOT NULL,
    shards      smallint NOT NULL,
    epoch       integer  NOT NULL,
    touched     bigint   NOT NULL,
    store_id    uuid     NOT NULL,
    admin_token bytea,                     -- its hash
    place       oid      NOT NULL DEFAULT 0, -- of this very table: a database that was restored from a dump has another
    restored_after uuid,                   -- of the effects of a restored database, those up to this one are gone through; NULL: all
    CONSTRAINT store_pk PRIMARY KEY (one),
    CONSTRAINT store_is_one CHECK (one = 1)
);

-- Keys of guarded requests, in the shard of their hash: one row per key, which a key that is claimed anew after it was released or forgotten
-- keeps. Its lock is the right to claim, extend, settle or resolve the key. Whoever needs several takes them by shard and hash, and after
-- all others in the order above.
CREATE TABLE hapax.guard_key (
    first_at    bigint   NOT NULL,
    started_at  bigint   NOT NULL,         -- of the latest run, as are all texts and all that says how it ended
    ended_at    bigint,
    fence       bigint   NOT NULL,         -- the ledger's record, with the next three, state and fingerprint
    lease_until bigint   NOT NULL,
    expires_at  bigint   NOT NULL,
    grace       bigint   NOT NULL,
    id          uuid     NOT NULL,
    key_hash    uuid     NOT NULL,
    runs        integer  NOT NULL,
    status      integer,
    shard       smallint NOT NULL,
    state       smallint NOT NULL,
    fingerprint bytea    NOT NULL,
    guard       text     COLLATE "C" NOT NULL,
    principal   text     COLLATE "C" NOT NULL,
    method      text     COLLATE "C" NOT NULL,
    path        text     COLLATE "C" NOT NULL,
    key         text     COLLATE "C" NOT NULL,
    node        text     COLLATE "C" NOT NULL,
    error       text     COLLATE "C",
    -- What a retry is answered with, sealed by the guard; of the latest run. Here and not apart, since a run that ends writes its row anew: a
    -- large one is kept out of line by the server itself, so lists stay narrow.
    answer      bytea,
    CONSTRAINT guard_key_pk PRIMARY KEY (key_hash, shard)
);
-- What is sealed cannot be compressed.
ALTER TABLE hapax.guard_key ALTER COLUMN answer SET STORAGE EXTERNAL;
-- For lists, the reaper, and whoever has an id: it grows at its right edge only.
CREATE INDEX guard_key_by_id ON hapax.guard_key (id);
-- For lists of what is running or unknown, and for the sweep of what was lost: few, whatever has been answered. One each, so that a run that
-- ends well touches one of them only.
CREATE INDEX guard_key_running ON hapax.guard_key (id) WHERE state = 0;
CREATE INDEX guard_key_unknown ON hapax.guard_key (id) WHERE state = 3;

-- The outbox. Its catalogue has no shards, for the same reason as the tables above. Whoever changes it holds the lock of this row, so that
-- revisions become visible in their order.
CREATE TABLE hapax.catalogue (
    one      smallint NOT NULL,
    revision bigint   NOT NULL,
    CONSTRAINT catalogue_pk PRIMARY KEY (one),
    CONSTRAINT catalogue_is_one CHECK (one = 1)
);
INSERT INTO hapax.catalogue (one, revision) VALUES (1, 0);

CREATE TABLE hapax.app (
    id            uuid   NOT NULL,
    created_at    bigint NOT NULL,
    updated_at    bigint NOT NULL,
    deleted_at    bigint,
    revision      bigint NOT NULL,         -- that made it what it is
    throttle_rate bigint,
    uid           text   COLLATE "C",
    name          text   COLLATE "C" NOT NULL,
    metadata      text   COLLATE "C" NOT NULL,  -- JSON, as is all below that is a list or a map
    extra         text   COLLATE "C" NOT NULL,
    CONSTRAINT app_pk PRIMARY KEY (id)
);
CREATE UNIQUE INDEX app_uid ON hapax.app (uid) WHERE uid IS NOT NULL AND deleted_at IS NULL;
CREATE INDEX app_revision ON hapax.app (revision);
CREATE INDEX app_deleted ON hapax.app (deleted_at) WHERE deleted_at IS NOT NULL;

CREATE TABLE hapax.endpoint (
    id            uuid     NOT NULL,
    app           uuid     NOT NULL,
    created_at    bigint   NOT NULL,
    updated_at    bigint   NOT NULL,
    deleted_at    bigint,
    failing_since bigint,
    revision      bigint   NOT NULL,
    throttle_rate bigint,
    standing      smallint NOT NULL,
    sealed        bytea    NOT NULL,       -- headers and secrets, as the outbox has sealed them
    uid           text     COLLATE "C",
    url           text     COLLATE "C" NOT NULL,
    description   text     COLLATE "C" NOT NULL,
    event_types   text     COLLATE "C" NOT NULL,
    channels      text     COLLATE "C" NOT NULL,
    metadata      text     COLLATE "C" NOT NULL,
    extra         text     COLLATE "C" NOT NULL,
    CONSTRAINT endpoint_pk PRIMARY KEY (id)
);
CREATE UNIQUE INDEX endpoint_uid ON hapax.endpoint (app, uid) WHERE uid IS NOT NULL AND deleted_at IS NULL;
CREATE INDEX endpoint_app ON hapax.endpoint (app);
CREATE INDEX endpoint_revision ON hapax.endpoint (revision);
CREATE INDEX endpoint_deleted ON hapax.endpoint (deleted_at) WHERE deleted_at IS NOT NULL;

-- One row per name: a deleted one's is taken over by the next of its name.
CREATE TABLE hapax.event_type (
    created_at    bigint  NOT NULL,
    updated_at    bigint  NOT NULL,
    deleted_at    bigint,
    revision      bigint  NOT NULL,
    archived      boolean NOT NULL,
    deprecated    boolean NOT NULL,
    name          text    COLLATE "C" NOT NULL,
    description   text    COLLATE "C" NOT NULL,
    group_name    text    COLLATE "C",
    feature_flags text    COLLATE "C" NOT NULL,
    schemas       text    COLLATE "C",
    extra         text    COLLATE "C" NOT NULL,
    CONSTRAINT event_type_pk PRIMARY KEY (name)
);
CREATE INDEX event_type_revision ON hapax.event_type (revision);
CREATE INDEX event_type_deleted ON hapax.event_type (deleted_at) WHERE deleted_at IS NOT NULL;

-- What its publisher said about a message, beside what its event has; in the event's shard, born and gone with it.
CREATE TABLE hapax.message (
    event        uuid     NOT NULL,
    app          uuid     NOT NULL,
    deliver_at   bigint,
    sequence     bigint,
    turn         bigint,                   -- of one that was to be sent later, among those of its application, for those who ask
    shard        smallint NOT NULL,
    channels     text     COLLATE "C",     -- NULL: none
    tags         text     COLLATE "C",     -- NULL: none
    api_version  text     COLLATE "C",
    ordering_key text     COLLATE "C",
    sequence_key text     COLLATE "C",
    CONSTRAINT message_pk PRIMARY KEY (shard, event)
);
-- For lists, of one application and of all.
CREATE INDEX message_by_app ON hapax.message (app, event);
CREATE INDEX message_by_event ON hapax.message (event);
-- Messages that are to be sent later: those that have no turn yet, and those that have. Others are in neither.
CREATE INDEX message_later ON hapax.message (app, deliver_at) WHERE deliver_at IS NOT NULL AND turn IS NULL;
CREATE INDEX message_turn ON hapax.message (app, turn) WHERE turn IS NOT NULL;

-- The latest turn that was given. Its lock is the right to give the next, so that turns are seen in their order; whoever holds it waits
-- for nothing but the messages. Goes with the application.
CREATE TABLE hapax.turn (
    app  uuid   NOT NULL,
    last bigint NOT NULL,
    CONSTRAINT turn_pk PRIMARY KEY (app)
);

-- How far those have read who ask for messages.
CREATE TABLE hapax.consumer (
    endpoint uuid   NOT NULL,
    at_once  uuid   NOT NULL,              -- the last message that was sent at once
    later    bigint NOT NULL,              -- the turn of the last that was sent later
    since    bigint,                       -- only what is not before this
    seen_at  bigint NOT NULL,
    name     text   COLLATE "C" NOT NULL,
    CONSTRAINT consumer_pk PRIMARY KEY (endpoint, name)
);
CREATE INDEX consumer_by_seen ON hapax.consumer (seen_at);

-- The latest number that messages of an application have under a key; in the shard of both. Its lock is the right to give the next, and
-- comes after that of an identity and before that of an effect. Goes with the application.
CREATE TABLE hapax.number (
    app   uuid     NOT NULL,
    last  bigint   NOT NULL,
    shard smallint NOT NULL,
    key   text     COLLATE "C" NOT NULL,
    CONSTRAINT number_pk PRIMARY KEY (shard, app, key)
);

-- Messages whose deliveries are not all made. Its lock is the right to make the next of them, and comes before all others. The list is
-- apart, so that a step rewrites a narrow row.
CREATE TABLE hapax.fan_out (
    n        bigint   NOT NULL GENERATED ALWAYS AS IDENTITY,  -- in the order in which they were accepted, if they have one
    event    uuid     NOT NULL,
    made     integer  NOT NULL,            -- so many of the list
    total    integer  NOT NULL,
    shard    smallint NOT NULL,
    source   text     COLLATE "C" NOT NULL,
    entity   text     COLLATE "C",         -- that the deliveries are ordered by; NULL: they are not
    template text     COLLATE "C" NOT NULL, -- what all deliveries have in common, as JSON
    CONSTRAINT fan_out_pk PRIMARY KEY (shard, event)
);
CREATE INDEX fan_out_by_n ON hapax.fan_out (n);
CREATE INDEX fan_out_order ON hapax.fan_out (source, entity, n) WHERE entity IS NOT NULL;
CREATE TABLE hapax.fan_out_list (
    event uuid     NOT NULL,
    shard smallint NOT NULL,
    later bytea    NOT NULL,               -- endpoints and attempts, 20 bytes each
    CONSTRAINT fan_out_list_pk PRIMARY KEY (shard, event)
);
ALTER TABLE hapax.fan_out_list ALTER COLUMN later SET STORAGE EXTERNAL;

-- Deliveries by endpoint. Other lanes are called otherwise, and have no part in it.
CREATE INDEX effect_posted ON hapax.effect (lane, id) WHERE lane >= 'ep_' AND lane < 'ep`';
-- What waits for its turn, by lane: with `queue_due` all that waits.
CREATE INDEX queue_behind ON hapax.queue (shard, lane) WHERE state = 0 AND gate <> 0;

-- What attempts to endpoints came to, by lane and hour; in the shard of the lane. Its locks are the last that a settlement takes, by lane
-- and hour.
CREATE TABLE hapax.tally (
    hour   bigint   NOT NULL,              -- when it began
    done   bigint   NOT NULL,
    failed bigint   NOT NULL,
    dead   bigint   NOT NULL,
    shard  smallint NOT NULL,
    lane   text     COLLATE "C" NOT NULL,
    CONSTRAINT tally_pk PRIMARY KEY (shard, lane, hour)
);
CREATE INDEX tally_by_hour ON hapax.tally (hour);

-- Secrets, sealed with a key that is not in here.
CREATE TABLE hapax.secret (
    at     bigint NOT NULL,
    place  text   COLLATE "C" NOT NULL,    -- what it belongs to; it opens nowhere else
    sealed bytea  NOT NULL,
    CONSTRAINT secret_pk PRIMARY KEY (place)
);
