-- The first shape of the store. `shard` (of 64, by the hash of scope and key) leads every key, so that the same tables run on
-- partitioned PostgreSQL and on relatives that distribute rows by a column: those want it in every unique key.
-- Names left free for what comes: effect, queue, attempt.

-- One row per business fact, with its first delivery, since they are born together. When its bytes are reaped the row stays as
-- the tombstone; when its identity has expired it goes. Fixed-size columns first: no padding between them.
CREATE TABLE hapax.event (
    at                bigint   NOT NULL,
    expires_at        bigint   NOT NULL,   -- of the identity
    retry_window      bigint   NOT NULL,
    id                uuid     NOT NULL,
    key_hash          uuid     NOT NULL,
    shard             smallint NOT NULL,
    status            smallint NOT NULL,
    key_origin        smallint NOT NULL,
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
    CONSTRAINT event_pk PRIMARY KEY (shard, id)
);
-- For lists: ids sort by time, so this grows at its right edge only.
CREATE INDEX event_by_id ON hapax.event (id);
-- For the reaper, shard by shard.
CREATE INDEX event_by_expiry ON hapax.event (shard, expires_at);

-- Who holds a key. Only the key and its holder: all else is said once, in `event`, and the one index that is not
-- append-ordered stays small. Whoever changes anything about an event's deliveries or expiry holds this row's lock.
CREATE TABLE hapax.identity (
    key_hash uuid     NOT NULL,
    event    uuid     NOT NULL,
    shard    smallint NOT NULL,
    source   text     COLLATE "C" NOT NULL,
    CONSTRAINT identity_pk PRIMARY KEY (shard, source, key_hash)
);

-- The bytes as they came. Apart from `event`, so that lists stay narrow and reaping is a plain delete.
CREATE TABLE hapax.payload (
    until        bigint   NOT NULL,
    event        uuid     NOT NULL,
    shard        smallint NOT NULL,
    content_type text     COLLATE "C",
    body         bytea    NOT NULL,
    CONSTRAINT payload_pk PRIMARY KEY (shard, event)
)
-- Bodies of up to a page stay in their row, uncompressed: compressing costs more than all else that an accept does.
WITH (toast_tuple_target = 8160);
ALTER TABLE hapax.payload ALTER COLUMN body SET STORAGE EXTERNAL;
CREATE INDEX payload_by_until ON hapax.payload (shard, until);

-- Every delivery but the first.
CREATE TABLE hapax.delivery (
    at           bigint   NOT NULL,
    event        uuid     NOT NULL,
    n            integer  NOT NULL,        -- 1 is the second delivery
    conflicts    integer  NOT NULL,        -- so far, this one included
    shard        smallint NOT NULL,
    outcome      smallint NOT NULL,
    conflict     boolean  NOT NULL,
    secret_index smallint,
    signed_at    bigint,
    body_hash    bytea    NOT NULL,
    scheme       text     COLLATE "C" NOT NULL,
    remote       text     COLLATE "C",
    body         bytea,                    -- of a conflict, up to a limit
    CONSTRAINT delivery_pk PRIMARY KEY (shard, event, n)
);

-- What this database is. `shards` is fixed for ever: every row was placed by it. `touched` is what a readiness check writes.
CREATE TABLE hapax.store (
    one         smallint NOT NULL,
    shards      smallint NOT NULL,
    touched     bigint   NOT NULL,
    store_id    uuid     NOT NULL,
    admin_token bytea,                     -- its hash
    CONSTRAINT store_pk PRIMARY KEY (one),
    CONSTRAINT store_is_one CHECK (one = 1)
);
