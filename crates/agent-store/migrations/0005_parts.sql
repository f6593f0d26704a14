-- Sessions, format 5. A page holds whole rows, so one row of more than half a page leaves the rest of it unused. An entry
-- that is long is kept in parts: the first in its own row, with how many follow. Older rows are whole and stay as they are.
ALTER TABLE entries ADD COLUMN parts INTEGER NOT NULL DEFAULT 0 CHECK (parts >= 0);

CREATE TABLE entry_parts (
  session INTEGER NOT NULL,
  seq     INTEGER NOT NULL,
  part    INTEGER NOT NULL CHECK (part > 0),
  body    BLOB NOT NULL,
  UNIQUE (session, seq, part),
  FOREIGN KEY (session, seq) REFERENCES entries (session, seq) ON DELETE CASCADE
) STRICT;

CREATE TRIGGER entry_parts_stay BEFORE UPDATE ON entry_parts
BEGIN SELECT RAISE(ABORT, 'entries are never changed'); END;

-- A cascade deletes the session first, so it passes.
CREATE TRIGGER entry_parts_remain BEFORE DELETE ON entry_parts
WHEN EXISTS (SELECT 1 FROM sessions WHERE n = OLD.session)
BEGIN SELECT RAISE(ABORT, 'entries are deleted with their session only'); END;
