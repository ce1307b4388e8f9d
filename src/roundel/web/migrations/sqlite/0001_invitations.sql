-- Who may answer: invitations for voters, tokens for judges, and what each voter is looking at.
-- Kept beside the tournaments, and no part of their record: an invitation is the right to lease and to tell.

CREATE TABLE web_invitation (
  id TEXT PRIMARY KEY,
  tournament INTEGER NOT NULL REFERENCES tournament,
  role TEXT NOT NULL CHECK (role IN ('voter', 'judge')),
  label TEXT NOT NULL,
  voters INTEGER NOT NULL CHECK (voters >= 1),
  most INTEGER CHECK (most >= 1),
  made REAL NOT NULL,
  UNIQUE (tournament, label)
) STRICT, WITHOUT ROWID;

CREATE TABLE web_revocation (
  invitation TEXT PRIMARY KEY REFERENCES web_invitation,
  revoked REAL NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE web_voter (
  invitation TEXT NOT NULL REFERENCES web_invitation,
  n INTEGER NOT NULL CHECK (n >= 1),
  joined REAL NOT NULL,
  answered INTEGER NOT NULL DEFAULT 0 CHECK (answered >= 0),
  duel TEXT,
  ahead TEXT,
  held TEXT,
  verdict TEXT CHECK (verdict IN ('first', 'second', 'tie')),
  due REAL,
  PRIMARY KEY (invitation, n),
  CHECK ((held IS NULL) = (verdict IS NULL) AND (held IS NULL) = (due IS NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX web_voter_due ON web_voter (due) WHERE held IS NOT NULL;

CREATE TRIGGER web_invitation_fixed BEFORE UPDATE ON web_invitation
BEGIN SELECT RAISE(ABORT, 'an invitation never changes: revoke it and make another'); END;
CREATE TRIGGER web_invitation_kept BEFORE DELETE ON web_invitation
BEGIN SELECT RAISE(ABORT, 'an invitation is never deleted: revoke it'); END;
CREATE TRIGGER web_revocation_fixed BEFORE UPDATE ON web_revocation
BEGIN SELECT RAISE(ABORT, 'a revocation is final'); END;
CREATE TRIGGER web_revocation_kept BEFORE DELETE ON web_revocation
BEGIN SELECT RAISE(ABORT, 'a revocation is final'); END;
