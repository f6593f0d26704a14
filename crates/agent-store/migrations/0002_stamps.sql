-- Sessions, format 2. What was read of each file has a row of its own, so that a commit writes what is new of it and
-- not all of it. Checkpoints written before hold the stamps in their body; a row here stands over one there.
CREATE TABLE reads (
  session INTEGER NOT NULL REFERENCES sessions (n) ON DELETE CASCADE,
  path    TEXT NOT NULL,
  body    TEXT NOT NULL,
  PRIMARY KEY (session, path)
) STRICT, WITHOUT ROWID;

-- 1 when the record holds only the stamps that are new since the last commit, 0 when it holds all.
ALTER TABLE journal ADD COLUMN adds INTEGER NOT NULL DEFAULT 0 CHECK (adds IN (0, 1));

-- Small rows live in their key's tree: a commit changes one page for each of these tables instead of two.
CREATE TABLE checkpoints_2 (
  session  INTEGER NOT NULL REFERENCES sessions (n) ON DELETE CASCADE,
  revision INTEGER NOT NULL,
  body     BLOB NOT NULL,
  PRIMARY KEY (session, revision)
) STRICT, WITHOUT ROWID;
INSERT INTO checkpoints_2 SELECT session, revision, body FROM checkpoints;
DROP TABLE checkpoints;
ALTER TABLE checkpoints_2 RENAME TO checkpoints;

CREATE TABLE usage_2 (
  session  INTEGER NOT NULL REFERENCES sessions (n) ON DELETE CASCADE,
  revision INTEGER NOT NULL,
  body     TEXT NOT NULL,
  PRIMARY KEY (session, revision)
) STRICT, WITHOUT ROWID;
INSERT INTO usage_2 SELECT session, revision, body FROM usage;
DROP TABLE usage;
ALTER TABLE usage_2 RENAME TO usage;
