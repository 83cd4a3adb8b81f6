-- Keys of requests and events that commit with the work they stand for. Times are microseconds since 1970.
CREATE TABLE IF NOT EXISTS hapax_key (
    key_hash    BLOB    NOT NULL PRIMARY KEY,
    -- What the key is unique in, and the key: for people, nothing is looked up by them.
    scope       TEXT    NOT NULL,
    key         TEXT    NOT NULL,
    -- 0 running, 1 completed, 2 completed without an answer, 3 unknown, 4 released.
    state       INTEGER NOT NULL,
    fingerprint BLOB    NOT NULL,
    fence       INTEGER NOT NULL,
    lease_until INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL,
    grace       INTEGER NOT NULL,
    -- From here on the row may be deleted.
    free_at     INTEGER NOT NULL,
    phase       TEXT,
    phase_data  BLOB,
    answer      BLOB
) STRICT;
CREATE INDEX IF NOT EXISTS hapax_key_free_at ON hapax_key (free_at);
