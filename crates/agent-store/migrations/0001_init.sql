-- Sessions, format 1. JSON bodies are the exact bytes that were written first; no row of `entries` or `events`
-- is ever changed, and none is deleted before its session.

-- The newest lease of each session name. Rows stay when a session is deleted, so that an old worker stays lost.
CREATE TABLE leases (
  session TEXT PRIMARY KEY,
  epoch   INTEGER NOT NULL CHECK (epoch > 0)
) STRICT, WITHOUT ROWID;

-- What changes with every commit: small, because a changed row is written anew as a whole.
CREATE TABLE sessions (
  n          INTEGER PRIMARY KEY,
  id         TEXT NOT NULL UNIQUE,
  model      TEXT NOT NULL,
  created_ms INTEGER NOT NULL,
  updated_ms INTEGER NOT NULL,
  revision   INTEGER NOT NULL DEFAULT 0 CHECK (revision >= 0),
  head       INTEGER NOT NULL DEFAULT 0 CHECK (head >= 0),
  last_seq   INTEGER NOT NULL DEFAULT 0 CHECK (last_seq >= 0),
  last_turn  INTEGER NOT NULL CHECK (last_turn >= 0),
  usage      TEXT NOT NULL,
  terminal   TEXT
) STRICT;

-- What is fixed when a session begins.
CREATE TABLE descriptions (
  session INTEGER PRIMARY KEY REFERENCES sessions (n) ON DELETE CASCADE,
  body    BLOB NOT NULL
) STRICT;

CREATE TABLE entries (
  session INTEGER NOT NULL REFERENCES sessions (n) ON DELETE CASCADE,
  seq     INTEGER NOT NULL,
  body    BLOB NOT NULL,
  UNIQUE (session, seq)
) STRICT;

-- The newest is the state; two older ones are kept for people who repair.
CREATE TABLE checkpoints (
  session  INTEGER NOT NULL REFERENCES sessions (n) ON DELETE CASCADE,
  revision INTEGER NOT NULL,
  body     BLOB NOT NULL,
  UNIQUE (session, revision)
) STRICT;

CREATE TABLE journal (
  session     INTEGER NOT NULL REFERENCES sessions (n) ON DELETE CASCADE,
  pos         INTEGER NOT NULL,
  is_response INTEGER NOT NULL CHECK (is_response IN (0, 1)),
  body        BLOB NOT NULL,
  UNIQUE (session, pos)
) STRICT;

CREATE TABLE usage (
  session  INTEGER NOT NULL REFERENCES sessions (n) ON DELETE CASCADE,
  revision INTEGER NOT NULL,
  body     TEXT NOT NULL,
  UNIQUE (session, revision)
) STRICT;

CREATE TABLE events (
  session INTEGER NOT NULL REFERENCES sessions (n) ON DELETE CASCADE,
  seq     INTEGER NOT NULL CHECK (seq > 0),
  body    BLOB NOT NULL,
  UNIQUE (session, seq)
) STRICT;

CREATE TABLE blobs (
  hash  TEXT NOT NULL UNIQUE CHECK (length(hash) = 64),
  bytes BLOB NOT NULL
) STRICT;

CREATE TABLE blob_refs (
  session INTEGER NOT NULL REFERENCES sessions (n) ON DELETE CASCADE,
  hash    TEXT NOT NULL REFERENCES blobs (hash),
  PRIMARY KEY (session, hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX blob_refs_hash ON blob_refs (hash);

CREATE TRIGGER entries_in_order BEFORE INSERT ON entries
WHEN NEW.seq <> (SELECT coalesce(max(seq) + 1, 0) FROM entries WHERE session = NEW.session)
BEGIN SELECT RAISE(ABORT, 'an entry must stand at the end of its session'); END;

CREATE TRIGGER entries_stay BEFORE UPDATE ON entries
BEGIN SELECT RAISE(ABORT, 'entries are never changed'); END;

-- A cascade deletes the session first, so it passes.
CREATE TRIGGER entries_remain BEFORE DELETE ON entries
WHEN EXISTS (SELECT 1 FROM sessions WHERE n = OLD.session)
BEGIN SELECT RAISE(ABORT, 'entries are deleted with their session only'); END;

CREATE TRIGGER events_in_order BEFORE INSERT ON events
WHEN NEW.seq <> (SELECT coalesce(max(seq) + 1, 1) FROM events WHERE session = NEW.session)
BEGIN SELECT RAISE(ABORT, 'an event must have the next number of its session'); END;

CREATE TRIGGER events_stay BEFORE UPDATE ON events
BEGIN SELECT RAISE(ABORT, 'events are never changed'); END;

CREATE TRIGGER blobs_follow AFTER DELETE ON blob_refs
WHEN NOT EXISTS (SELECT 1 FROM blob_refs WHERE hash = OLD.hash)
BEGIN DELETE FROM blobs WHERE hash = OLD.hash; END;
