-- Keys of requests and events that commit with the work they stand for. Times are microseconds since 1970.
CREATE TABLE IF NOT EXISTS hapax_key (
    key_hash    bytea  NOT NULL PRIMARY KEY,
    -- What the key is unique in, and the key: for people, nothing is looked up by them.
    scope       text   NOT NULL,
    key         text   NOT NULL,
    -- 0 running, 1 completed, 2 completed without an answer, 3 unknown, 4 released.
    state       int8   NOT NULL,
    fingerprint bytea  NOT NULL,
    fence       int8   NOT NULL,
    lease_until int8   NOT NULL,
    expires_at  int8   NOT NULL,
    grace       int8   NOT NULL,
    -- From here on the row may be deleted.
    free_at     int8   NOT NULL,
    phase       text,
    phase_data  bytea,
    answer      bytea
);
CREATE INDEX IF NOT EXISTS hapax_key_free_at ON hapax_key (free_at);
