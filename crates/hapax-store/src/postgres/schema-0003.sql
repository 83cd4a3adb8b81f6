-- The only endpoint that a message is for: an example. No other has missed it. NULL: it is for all that are subscribed.
ALTER TABLE hapax.message ADD COLUMN only_to uuid;

-- From when on an endpoint that goes on failing is disabled, as its owner was told. NULL: nobody was told.
ALTER TABLE hapax.endpoint ADD COLUMN disabled_from bigint;
