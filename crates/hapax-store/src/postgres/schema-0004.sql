-- A run that ends well touches no index of its key: none knows its state, and there is room in its page. What is running is found by its
-- lease, which ends at some time and stays as it was when the run does; see key_sweep.rs.
DROP INDEX hapax.guard_key_running;
CREATE INDEX guard_key_by_lease ON hapax.guard_key (lease_until);
DROP INDEX hapax.guard_key_unknown;
-- What is unknown. NULL and not false for all else, so that it takes no room.
ALTER TABLE hapax.guard_key ADD COLUMN unknown boolean GENERATED ALWAYS AS (CASE WHEN state = 3 THEN true END) STORED;
CREATE INDEX guard_key_unknown ON hapax.guard_key (id) WHERE unknown;
ALTER TABLE hapax.guard_key SET (fillfactor = 50);

-- Of keys whose lease was over by then none is running. It begins before all times.
ALTER TABLE hapax.store ADD COLUMN swept bigint NOT NULL DEFAULT 0;
