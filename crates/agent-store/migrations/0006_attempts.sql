-- Sessions, format 6. How many workers took the open turn up and are not known to have stopped in order, the one at work
-- included. It is counted before anything of the session is read, and begins anew with each turn.
ALTER TABLE sessions ADD COLUMN attempts INTEGER NOT NULL DEFAULT 0 CHECK (attempts >= 0);
