-- Tournaments: a spec, its rounds, their pairs and duels, every lease ever granted and every delivery ever made.
-- A duel gets its row when it is first offered: until then it is one of `slots - made - bulk` of its pair.

CREATE TABLE tournament (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  spec TEXT NOT NULL,
  digest TEXT NOT NULL,
  created DOUBLE PRECISION NOT NULL
);

CREATE TABLE round (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tournament BIGINT NOT NULL REFERENCES tournament,
  n BIGINT NOT NULL CHECK (n >= 1),
  plan BYTEA NOT NULL,
  plan_digest TEXT NOT NULL,
  before TEXT NOT NULL,
  opened DOUBLE PRECISION NOT NULL,
  deadline DOUBLE PRECISION,
  digest TEXT NOT NULL,
  reason TEXT CHECK (reason IN ('complete', 'deadline', 'hand', 'ended')),
  closed DOUBLE PRECISION,
  result BYTEA,
  seq BIGINT,
  head TEXT,
  close_digest TEXT,
  UNIQUE (tournament, n),
  CHECK ((reason IS NULL) = (closed IS NULL) AND (reason IS NULL) = (result IS NULL)
    AND (reason IS NULL) = (seq IS NULL) AND (reason IS NULL) = (head IS NULL)
    AND (reason IS NULL) = (close_digest IS NULL))
);
CREATE UNIQUE INDEX round_open ON round (tournament) WHERE reason IS NULL;

CREATE TABLE pair (
  round BIGINT NOT NULL REFERENCES round,
  p BIGINT NOT NULL,
  first BIGINT NOT NULL,
  second BIGINT NOT NULL,
  times BIGINT NOT NULL CHECK (times >= 1),
  slots BIGINT NOT NULL CHECK (slots >= times AND slots % times = 0),
  base BIGINT NOT NULL,
  earlier BIGINT NOT NULL,
  made BIGINT NOT NULL DEFAULT 0,
  bulk BIGINT NOT NULL DEFAULT 0 CHECK (bulk >= 0),
  done BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (round, p),
  UNIQUE (round, first, second),
  CHECK (first < second),
  CHECK (made + bulk <= slots),
  CHECK (done BETWEEN 0 AND made)
);
CREATE INDEX pair_next ON pair (round, (made + bulk), p) WHERE made + bulk < slots;
CREATE INDEX pair_todo ON pair (round, (done + bulk)) WHERE done + bulk < slots;

CREATE TABLE duel (
  round BIGINT NOT NULL,
  k BIGINT NOT NULL,
  p BIGINT NOT NULL,
  first BIGINT NOT NULL,
  second BIGINT NOT NULL,
  context BIGINT,
  state TEXT NOT NULL CHECK (state IN ('open', 'leased', 'done')),
  epoch BIGINT NOT NULL DEFAULT 0 CHECK (epoch >= 0),
  expires DOUBLE PRECISION NOT NULL DEFAULT 0,
  PRIMARY KEY (round, k),
  FOREIGN KEY (round, p) REFERENCES pair (round, p),
  CHECK (first <> second)
);
CREATE INDEX duel_waiting ON duel (round, expires, k) WHERE state <> 'done';

CREATE TABLE lease (
  round BIGINT NOT NULL,
  k BIGINT NOT NULL,
  epoch BIGINT NOT NULL CHECK (epoch >= 1),
  token TEXT NOT NULL UNIQUE,
  judge TEXT,
  granted DOUBLE PRECISION NOT NULL,
  expires DOUBLE PRECISION NOT NULL,
  digest TEXT NOT NULL,
  PRIMARY KEY (round, k, epoch),
  FOREIGN KEY (round, k) REFERENCES duel (round, k)
);

CREATE TABLE verdict (
  tournament BIGINT NOT NULL REFERENCES tournament,
  seq BIGINT NOT NULL CHECK (seq >= 1),
  key TEXT NOT NULL,
  version BIGINT NOT NULL DEFAULT 1 CHECK (version >= 1),
  round BIGINT NOT NULL REFERENCES round,
  k BIGINT,
  epoch BIGINT,
  verdict TEXT CHECK (verdict IN ('first', 'second', 'tie')),
  became TEXT NOT NULL CHECK (became IN ('counted', 'late', 'surplus', 'rejected')),
  carried BIGINT,
  judge TEXT,
  cost DOUBLE PRECISION,
  note TEXT,
  body TEXT,
  received DOUBLE PRECISION NOT NULL,
  digest TEXT NOT NULL,
  PRIMARY KEY (tournament, seq),
  UNIQUE (tournament, key, version),
  FOREIGN KEY (round, k) REFERENCES duel (round, k),
  FOREIGN KEY (round, k, epoch) REFERENCES lease (round, k, epoch),
  FOREIGN KEY (tournament, carried) REFERENCES verdict (tournament, seq),
  CHECK (CASE WHEN k IS NULL THEN verdict IS NULL AND epoch IS NULL ELSE version = 1 END),
  CHECK (became <> 'counted' OR k IS NULL OR verdict IS NOT NULL)
);
CREATE UNIQUE INDEX verdict_counted ON verdict (round, k) WHERE became = 'counted' AND k IS NOT NULL;
CREATE UNIQUE INDEX verdict_carried ON verdict (tournament, carried) WHERE carried IS NOT NULL;
CREATE INDEX verdict_bulk ON verdict (round, key, version) WHERE k IS NULL;

CREATE TABLE bulk (
  tournament BIGINT NOT NULL,
  seq BIGINT NOT NULL,
  round BIGINT NOT NULL,
  p BIGINT NOT NULL,
  wins BIGINT NOT NULL CHECK (wins >= 0),
  ties BIGINT NOT NULL CHECK (ties >= 0),
  played BIGINT NOT NULL,
  PRIMARY KEY (tournament, seq, p),
  FOREIGN KEY (tournament, seq) REFERENCES verdict (tournament, seq),
  FOREIGN KEY (round, p) REFERENCES pair (round, p),
  CHECK (wins + ties <= played)
);

CREATE TABLE intent (
  tournament BIGINT NOT NULL REFERENCES tournament,
  key TEXT NOT NULL,
  judge TEXT,
  request TEXT NOT NULL,
  made DOUBLE PRECISION NOT NULL,
  digest TEXT NOT NULL,
  PRIMARY KEY (tournament, key)
);

CREATE TABLE response (
  tournament BIGINT NOT NULL,
  key TEXT NOT NULL,
  body TEXT NOT NULL,
  cost DOUBLE PRECISION,
  received DOUBLE PRECISION NOT NULL,
  digest TEXT NOT NULL,
  PRIMARY KEY (tournament, key),
  FOREIGN KEY (tournament, key) REFERENCES intent (tournament, key)
);

CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '%', TG_ARGV[0];
END $$;

CREATE FUNCTION refuse_counted_when_closed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (SELECT reason FROM round WHERE id = NEW.round) IS NOT NULL THEN
    RAISE EXCEPTION 'a closed round counts no more verdicts';
  END IF;
  RETURN NEW;
END $$;

CREATE TRIGGER tournament_fixed BEFORE UPDATE ON tournament
  FOR EACH ROW EXECUTE FUNCTION refuse('a tournament never changes');
CREATE TRIGGER tournament_kept BEFORE DELETE ON tournament
  FOR EACH ROW EXECUTE FUNCTION refuse('a tournament is never deleted');

CREATE TRIGGER round_fixed BEFORE UPDATE ON round FOR EACH ROW
WHEN (OLD.reason IS NOT NULL OR NEW.reason IS NULL
  OR (NEW.id, NEW.tournament, NEW.n, NEW.plan, NEW.plan_digest, NEW.before, NEW.opened, NEW.deadline, NEW.digest)
  IS DISTINCT FROM
  (OLD.id, OLD.tournament, OLD.n, OLD.plan, OLD.plan_digest, OLD.before, OLD.opened, OLD.deadline, OLD.digest))
EXECUTE FUNCTION refuse('a round changes once, when it closes');
CREATE TRIGGER round_kept BEFORE DELETE ON round
  FOR EACH ROW EXECUTE FUNCTION refuse('a round is never deleted');

CREATE TRIGGER pair_fixed BEFORE UPDATE ON pair FOR EACH ROW
WHEN (NEW.made < OLD.made OR NEW.done < OLD.done
  OR (NEW.round, NEW.p, NEW.first, NEW.second, NEW.times, NEW.slots, NEW.base, NEW.earlier)
  IS DISTINCT FROM (OLD.round, OLD.p, OLD.first, OLD.second, OLD.times, OLD.slots, OLD.base, OLD.earlier))
EXECUTE FUNCTION refuse('of a pair only its counters change');
CREATE TRIGGER pair_kept BEFORE DELETE ON pair
  FOR EACH ROW EXECUTE FUNCTION refuse('a pair is never deleted');

CREATE TRIGGER duel_fixed BEFORE UPDATE ON duel FOR EACH ROW
WHEN (NEW.epoch < OLD.epoch OR OLD.state = 'done'
  OR (NEW.round, NEW.k, NEW.p, NEW.first, NEW.second, NEW.context)
  IS DISTINCT FROM (OLD.round, OLD.k, OLD.p, OLD.first, OLD.second, OLD.context))
EXECUTE FUNCTION refuse('of a duel only its state changes, and never back from done');
CREATE TRIGGER duel_kept BEFORE DELETE ON duel
  FOR EACH ROW EXECUTE FUNCTION refuse('a duel is never deleted');

CREATE TRIGGER verdict_open_round BEFORE INSERT ON verdict FOR EACH ROW
WHEN (NEW.became = 'counted') EXECUTE FUNCTION refuse_counted_when_closed();
CREATE TRIGGER lease_fixed BEFORE UPDATE ON lease FOR EACH ROW EXECUTE FUNCTION refuse('leases are append-only');
CREATE TRIGGER lease_kept BEFORE DELETE ON lease FOR EACH ROW EXECUTE FUNCTION refuse('leases are append-only');
CREATE TRIGGER verdict_fixed BEFORE UPDATE ON verdict FOR EACH ROW EXECUTE FUNCTION refuse('verdicts are append-only');
CREATE TRIGGER verdict_kept BEFORE DELETE ON verdict FOR EACH ROW EXECUTE FUNCTION refuse('verdicts are append-only');
CREATE TRIGGER bulk_fixed BEFORE UPDATE ON bulk FOR EACH ROW EXECUTE FUNCTION refuse('counts are append-only');
CREATE TRIGGER bulk_kept BEFORE DELETE ON bulk FOR EACH ROW EXECUTE FUNCTION refuse('counts are append-only');
CREATE TRIGGER intent_fixed BEFORE UPDATE ON intent FOR EACH ROW EXECUTE FUNCTION refuse('intents are append-only');
CREATE TRIGGER intent_kept BEFORE DELETE ON intent FOR EACH ROW EXECUTE FUNCTION refuse('intents are append-only');
CREATE TRIGGER response_fixed BEFORE UPDATE ON response FOR EACH ROW EXECUTE FUNCTION refuse('responses are append-only');
CREATE TRIGGER response_kept BEFORE DELETE ON response FOR EACH ROW EXECUTE FUNCTION refuse('responses are append-only');

CREATE TRIGGER tournament_whole BEFORE TRUNCATE ON tournament FOR EACH STATEMENT EXECUTE FUNCTION refuse('nothing is ever truncated');
CREATE TRIGGER round_whole BEFORE TRUNCATE ON round FOR EACH STATEMENT EXECUTE FUNCTION refuse('nothing is ever truncated');
CREATE TRIGGER pair_whole BEFORE TRUNCATE ON pair FOR EACH STATEMENT EXECUTE FUNCTION refuse('nothing is ever truncated');
CREATE TRIGGER duel_whole BEFORE TRUNCATE ON duel FOR EACH STATEMENT EXECUTE FUNCTION refuse('nothing is ever truncated');
CREATE TRIGGER lease_whole BEFORE TRUNCATE ON lease FOR EACH STATEMENT EXECUTE FUNCTION refuse('nothing is ever truncated');
CREATE TRIGGER verdict_whole BEFORE TRUNCATE ON verdict FOR EACH STATEMENT EXECUTE FUNCTION refuse('nothing is ever truncated');
CREATE TRIGGER bulk_whole BEFORE TRUNCATE ON bulk FOR EACH STATEMENT EXECUTE FUNCTION refuse('nothing is ever truncated');
CREATE TRIGGER intent_whole BEFORE TRUNCATE ON intent FOR EACH STATEMENT EXECUTE FUNCTION refuse('nothing is ever truncated');
CREATE TRIGGER response_whole BEFORE TRUNCATE ON response FOR EACH STATEMENT EXECUTE FUNCTION refuse('nothing is ever truncated');
