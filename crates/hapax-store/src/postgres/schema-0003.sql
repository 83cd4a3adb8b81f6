-- The only endpoint that a message is for: an example. No other has missed it. NULL: it is for all that are subscribed.
ALTER TABLE hapax.message ADD COLUMN only_to uuid;
