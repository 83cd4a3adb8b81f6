-- Messages of an application that are sent at once and have no turn yet. Commits end in any order, so those who ask get every message by its
-- turn, which is given to what is there when somebody asks; `turn` is of all messages now. What nobody asks for stays in here.
CREATE INDEX message_unasked ON hapax.message (app, event) WHERE deliver_at IS NULL AND turn IS NULL;
-- Places were by id: those who had one are given messages again, and miss none.
UPDATE hapax.consumer SET at_once = '00000000-0000-0000-0000-000000000000';

-- What operators are to hear about endpoints and deliveries, written with the change that it tells of, until an event tells it. It has no
-- shards: there are few, and not for long.
CREATE TABLE hapax.tiding (
    n        bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    at       bigint NOT NULL,
    app      uuid,                         -- NULL: whoever wrote it did not know
    endpoint uuid   NOT NULL,
    news     text   COLLATE "C" NOT NULL,  -- JSON
    CONSTRAINT tiding_pk PRIMARY KEY (n)
);
