-- The only endpoint that a message is for: an example. No other has missed it. NULL: it is for all that are subscribed.
ALTER TABLE message ADD COLUMN only_to BLOB;

-- From when on an endpoint that goes on failing is disabled, as its owner was told. NULL: nobody was told.
ALTER TABLE endpoint ADD COLUMN disabled_from INTEGER;
