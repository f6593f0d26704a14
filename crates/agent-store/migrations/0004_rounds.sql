-- Sessions, format 4. What was said of each turn by work behind it, for a session that is taken up again.
CREATE TABLE rounds (
  session INTEGER NOT NULL REFERENCES sessions (n) ON DELETE CASCADE,
  turn    INTEGER NOT NULL CHECK (turn > 0),
  body    BLOB NOT NULL,
  PRIMARY KEY (session, turn)
) STRICT, WITHOUT ROWID;
