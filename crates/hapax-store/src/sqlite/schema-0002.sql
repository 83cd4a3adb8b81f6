-- What operators are to hear about endpoints and deliveries, written with the change that it tells of, until an event tells it. A number is
-- never given again: whoever forgets one that was told must not forget another.
CREATE TABLE tiding (
    n        INTEGER PRIMARY KEY AUTOINCREMENT,
    at       INTEGER NOT NULL,
    app      BLOB,                        -- NULL: whoever wrote it did not know
    endpoint BLOB    NOT NULL,
    news     TEXT    NOT NULL             -- JSON
) STRICT;
