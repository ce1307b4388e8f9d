-- Tournaments: a spec, its rounds, their pairs and duels, every lease ever granted and every delivery ever made.
-- A duel gets its row when it is first offered: until then it is one of `slots - made - bulk` of its pair.

CREATE TABLE tournament (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  spec TEXT NOT NULL,
  digest TEXT NOT NULL,
  created REAL NOT NULL
) STRICT;

CREATE TABLE round (
  id INTEGER PRIMARY KEY,
  tournament INTEGER NOT NULL REFERENCES tournament,
  n INTEGER NOT NULL CHECK (n >= 1),
  plan BLOB NOT NULL,
  plan_digest TEXT NOT NULL,
  before TEXT NOT NULL,
  opened REAL NOT NULL,
  deadline REAL,
  digest TEXT NOT NULL,
  reason TEXT CHECK (reason IN ('complete', 'deadline', 'hand', 'ended')),
  closed REAL,
  result BLOB,
  seq INTEGER,
  head TEXT,
  close_digest TEXT,
  UNIQUE (tournament, n),
  CHECK ((reason IS NULL) = (closed IS NULL) AND (reason IS NULL) = (result IS NULL)
    AND (reason IS NULL) = (seq IS NULL) AND (reason IS NULL) = (head IS NULL)
    AND (reason IS NULL) = (close_digest IS NULL))
) STRICT;
CREATE UNIQUE INDEX round_open ON round (tournament) WHERE reason IS NULL;

CREATE TABLE pair (
  round INTEGER NOT NULL REFERENCES round,
  p INTEGER NOT NULL,
  first INTEGER NOT NULL,
  second INTEGER NOT NULL,
  times INTEGER NOT NULL CHECK (times >= 1),
  slots INTEGER NOT NULL CHECK (slots >= times AND slots % times = 0),
  base INTEGER NOT NULL,
  earlier INTEGER NOT NULL,
  made INTEGER NOT NULL DEFAULT 0,
  bulk INTEGER NOT NULL DEFAULT 0 CHECK (bulk >= 0),
  done INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (round, p),
  UNIQUE (round, first, second),
  CHECK (first < second),
  CHECK (made + bulk <= slots),
  CHECK (done BETWEEN 0 AND made)
) STRICT, WITHOUT ROWID;
CREATE INDEX pair_next ON pair (round, made + bulk, p) WHERE made + bulk < slots;
CREATE INDEX pair_todo ON pair (round, done + bulk) WHERE done + bulk < slots;

CREATE TABLE duel (
  round INTEGER NOT NULL,
  k INTEGER NOT NULL,
  p INTEGER NOT NULL,
  first INTEGER NOT NULL,
  second INTEGER NOT NULL,
  context INTEGER,
  state TEXT NOT NULL CHECK (state IN ('open', 'leased', 'done')),
  epoch INTEGER NOT NULL DEFAULT 0 CHECK (epoch >= 0),
  expires REAL NOT NULL DEFAULT 0,
  PRIMARY KEY (round, k),
  FOREIGN KEY (round, p) REFERENCES pair (round, p),
  CHECK (first <> second)
) STRICT, WITHOUT ROWID;
CREATE INDEX duel_waiting ON duel (round, expires, k) WHERE state <> 'done';

CREATE TABLE lease (
  round INTEGER NOT NULL,
  k INTEGER NOT NULL,
  epoch INTEGER NOT NULL CHECK (epoch >= 1),
  token TEXT NOT NULL UNIQUE,
  judge TEXT,
  granted REAL NOT NULL,
  expires REAL NOT NULL,
  digest TEXT NOT NULL,
  PRIMARY KEY (round, k, epoch),
  FOREIGN KEY (round, k) REFERENCES duel (round, k)
) STRICT, WITHOUT ROWID;

CREATE TABLE verdict (
  tournament INTEGER NOT NULL REFERENCES tournament,
  seq INTEGER NOT NULL CHECK (seq >= 1),
  key TEXT NOT NULL,
  version INTEGER NOT NULL DEFAULT 1 CHECK (version >= 1),
  round INTEGER NOT NULL REFERENCES round,
  k INTEGER,
  epoch INTEGER,
  verdict TEXT CHECK (verdict IN ('first', 'second', 'tie')),
  became TEXT NOT NULL CHECK (became IN ('counted', 'late', 'surplus', 'rejected')),
  carried INTEGER,
  judge TEXT,
  cost REAL,
  note TEXT,
  body TEXT,
  received REAL NOT NULL,
  digest TEXT NOT NULL,
  PRIMARY KEY (tournament, seq),
  UNIQUE (tournament, key, version),
  FOREIGN KEY (round, k) REFERENCES duel (round, k),
  FOREIGN KEY (round, k, epoch) REFERENCES lease (round, k, epoch),
  FOREIGN KEY (tournament, carried) REFERENCES verdict (tournament, seq),
  CHECK (CASE WHEN k IS NULL THEN verdict IS NULL AND epoch IS NULL ELSE version = 1 END),
  CHECK (became <> 'counted' OR k IS NULL OR verdict IS NOT NULL)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX verdict_counted ON verdict (round, k) WHERE became = 'counted' AND k IS NOT NULL;
CREATE UNIQUE INDEX verdict_carried ON verdict (tournament, carried) WHERE carried IS NOT NULL;
CREATE INDEX verdict_bulk ON verdict (round, key, version) WHERE k IS NULL;

CREATE TABLE bulk (
  tournament INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  round INTEGER NOT NULL,
  p INTEGER NOT NULL,
  wins INTEGER NOT NULL CHECK (wins >= 0),
  ties INTEGER NOT NULL CHECK (ties >= 0),
  played INTEGER NOT NULL,
  PRIMARY KEY (tournament, seq, p),
  FOREIGN KEY (tournament, seq) REFERENCES verdict (tournament, seq),
  FOREIGN KEY (round, p) REFERENCES pair (round, p),
  CHECK (wins + ties <= played)
) STRICT, WITHOUT ROWID;

CREATE TABLE intent (
  tournament INTEGER NOT NULL REFERENCES tournament,
  key TEXT NOT NULL,
  judge TEXT,
  request TEXT NOT NULL,
  made REAL NOT NULL,
  digest TEXT NOT NULL,
  PRIMARY KEY (tournament, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE response (
  tournament INTEGER NOT NULL,
  key TEXT NOT NULL,
  body TEXT NOT NULL,
  cost REAL,
  received REAL NOT NULL,
  digest TEXT NOT NULL,
  PRIMARY KEY (tournament, key),
  FOREIGN KEY (tournament, key) REFERENCES intent (tournament, key)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER tournament_fixed BEFORE UPDATE ON tournament
BEGIN SELECT RAISE(ABORT, 'a tournament never changes'); END;
CREATE TRIGGER tournament_kept BEFORE DELETE ON tournament
BEGIN SELECT RAISE(ABORT, 'a tournament is never deleted'); END;

CREATE TRIGGER round_fixed BEFORE UPDATE ON round
WHEN OLD.reason IS NOT NULL OR NEW.reason IS NULL OR NEW.id IS NOT OLD.id OR NEW.tournament IS NOT OLD.tournament
  OR NEW.n IS NOT OLD.n OR NEW.plan IS NOT OLD.plan OR NEW.plan_digest IS NOT OLD.plan_digest
  OR NEW.before IS NOT OLD.before OR NEW.opened IS NOT OLD.opened OR NEW.deadline IS NOT OLD.deadline
  OR NEW.digest IS NOT OLD.digest
BEGIN SELECT RAISE(ABORT, 'a round changes once, when it closes'); END;
CREATE TRIGGER round_kept BEFORE DELETE ON round
BEGIN SELECT RAISE(ABORT, 'a round is never deleted'); END;

CREATE TRIGGER pair_fixed BEFORE UPDATE ON pair
WHEN NEW.round IS NOT OLD.round OR NEW.p IS NOT OLD.p OR NEW.first IS NOT OLD.first OR NEW.second IS NOT OLD.second
  OR NEW.times IS NOT OLD.times OR NEW.slots IS NOT OLD.slots OR NEW.base IS NOT OLD.base
  OR NEW.earlier IS NOT OLD.earlier OR NEW.made < OLD.made OR NEW.done < OLD.done
BEGIN SELECT RAISE(ABORT, 'of a pair only its counters change'); END;
CREATE TRIGGER pair_kept BEFORE DELETE ON pair
BEGIN SELECT RAISE(ABORT, 'a pair is never deleted'); END;

CREATE TRIGGER duel_fixed BEFORE UPDATE ON duel
WHEN NEW.round IS NOT OLD.round OR NEW.k IS NOT OLD.k OR NEW.p IS NOT OLD.p OR NEW.first IS NOT OLD.first
  OR NEW.second IS NOT OLD.second OR NEW.context IS NOT OLD.context OR NEW.epoch < OLD.epoch
  OR OLD.state = 'done'
BEGIN SELECT RAISE(ABORT, 'of a duel only its state changes, and never back from done'); END;
CREATE TRIGGER duel_kept BEFORE DELETE ON duel
BEGIN SELECT RAISE(ABORT, 'a duel is never deleted'); END;

CREATE TRIGGER lease_fixed BEFORE UPDATE ON lease BEGIN SELECT RAISE(ABORT, 'leases are append-only'); END;
CREATE TRIGGER lease_kept BEFORE DELETE ON lease BEGIN SELECT RAISE(ABORT, 'leases are append-only'); END;

CREATE TRIGGER verdict_open_round BEFORE INSERT ON verdict
WHEN NEW.became = 'counted' AND (SELECT reason FROM round WHERE id = NEW.round) IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a closed round counts no more verdicts'); END;
CREATE TRIGGER verdict_fixed BEFORE UPDATE ON verdict BEGIN SELECT RAISE(ABORT, 'verdicts are append-only'); END;
CREATE TRIGGER verdict_kept BEFORE DELETE ON verdict BEGIN SELECT RAISE(ABORT, 'verdicts are append-only'); END;

CREATE TRIGGER bulk_fixed BEFORE UPDATE ON bulk BEGIN SELECT RAISE(ABORT, 'counts are append-only'); END;
CREATE TRIGGER bulk_kept BEFORE DELETE ON bulk BEGIN SELECT RAISE(ABORT, 'counts are append-only'); END;
CREATE TRIGGER intent_fixed BEFORE UPDATE ON intent BEGIN SELECT RAISE(ABORT, 'intents are append-only'); END;
CREATE TRIGGER intent_kept BEFORE DELETE ON intent BEGIN SELECT RAISE(ABORT, 'intents are append-only'); END;
CREATE TRIGGER response_fixed BEFORE UPDATE ON response BEGIN SELECT RAISE(ABORT, 'responses are append-only'); END;
CREATE TRIGGER response_kept BEFORE DELETE ON response BEGIN SELECT RAISE(ABORT, 'responses are append-only'); END;
