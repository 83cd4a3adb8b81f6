-- Whichever of the chain was started last: effect.seq. As long as somebody holds it, no other of the chain starts, not even an earlier one that
-- has come back. NULL: none has started since this was added.
ALTER TABLE chain ADD COLUMN running INTEGER;
