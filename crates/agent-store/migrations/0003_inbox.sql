-- Sessions, format 3. What is said to a session from outside waits here until a commit uses it. An input with a key stays
-- when it was used, without its body, so that a second one of the key is refused for as long as the session lives.
CREATE TABLE inputs (
  session INTEGER NOT NULL REFERENCES sessions (n) ON DELETE CASCADE,
  id      INTEGER NOT NULL CHECK (id > 0),
  key     TEXT,
  body    BLOB,
  PRIMARY KEY (session, id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX inputs_key ON inputs (session, key) WHERE key IS NOT NULL;
CREATE INDEX inputs_open ON inputs (session, id) WHERE body IS NOT NULL;

-- Whether a turn is open, which alone hears inputs.
ALTER TABLE sessions ADD COLUMN is_open INTEGER NOT NULL DEFAULT 0 CHECK (is_open IN (0, 1));
UPDATE sessions SET is_open = terminal IS NULL AND last_turn > 0;

-- Numbers of inputs are given once.
ALTER TABLE sessions ADD COLUMN last_input INTEGER NOT NULL DEFAULT 0 CHECK (last_input >= 0);
