-- Who may answer: invitations for voters, tokens for judges, and what each voter is looking at.
-- Kept beside the tournaments, and no part of their record: an invitation is the right to lease and to tell.

CREATE TABLE web_invitation (
  id TEXT PRIMARY KEY,
  tournament BIGINT NOT NULL REFERENCES tournament,
  role TEXT NOT NULL CHECK (role IN ('voter', 'judge')),
  label TEXT NOT NULL,
  voters BIGINT NOT NULL CHECK (voters >= 1),
  most BIGINT CHECK (most >= 1),
  made DOUBLE PRECISION NOT NULL,
  UNIQUE (tournament, label)
);

CREATE TABLE web_revocation (
  invitation TEXT PRIMARY KEY REFERENCES web_invitation,
  revoked DOUBLE PRECISION NOT NULL
);

CREATE TABLE web_voter (
  invitation TEXT NOT NULL REFERENCES web_invitation,
  n BIGINT NOT NULL CHECK (n >= 1),
  joined DOUBLE PRECISION NOT NULL,
  answered BIGINT NOT NULL DEFAULT 0 CHECK (answered >= 0),
  duel TEXT,
  ahead TEXT,
  held TEXT,
  verdict TEXT CHECK (verdict IN ('first', 'second', 'tie')),
  due DOUBLE PRECISION,
  PRIMARY KEY (invitation, n),
  CHECK ((held IS NULL) = (verdict IS NULL) AND (held IS NULL) = (due IS NULL))
);
CREATE INDEX web_voter_due ON web_voter (due) WHERE held IS NOT NULL;

CREATE TRIGGER web_invitation_fixed BEFORE UPDATE ON web_invitation
  FOR EACH ROW EXECUTE FUNCTION refuse('an invitation never changes: revoke it and make another');
CREATE TRIGGER web_invitation_kept BEFORE DELETE ON web_invitation
  FOR EACH ROW EXECUTE FUNCTION refuse('an invitation is never deleted: revoke it');
CREATE TRIGGER web_revocation_fixed BEFORE UPDATE ON web_revocation
  FOR EACH ROW EXECUTE FUNCTION refuse('a revocation is final');
CREATE TRIGGER web_revocation_kept BEFORE DELETE ON web_revocation
  FOR EACH ROW EXECUTE FUNCTION refuse('a revocation is final');
