/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The schema, step by step, and every statement that is used more than once. A
 * step is never changed once it was released: a new one follows it, and
 * STORE_VERSION counts them. Times are Unix seconds, so that
 * datetime(t, 'unixepoch') works; missing is NULL, never 0.
 */
#include "store_private.h"

const char *const store_migrations[STORE_VERSION] = {
	"CREATE TABLE calls (\n"
	"  key TEXT PRIMARY KEY NOT NULL,   -- nightclerk key --request BODY --path PATH\n"
	"  status TEXT NOT NULL,            -- pending: somebody is at it; done: a result was recorded; abandoned: neither\n"
	"  reason TEXT,                     -- why abandoned: status_504, cut, owner_exited, lease_over, released, ...\n"
	"  model TEXT,\n"
	"  schema_version TEXT NOT NULL,\n"
	"  process TEXT,                    -- of its first attempt, as path\n"
	"  path TEXT,\n"
	"  prompt_tokens INTEGER,           -- of the recorded result, once, as the next four\n"
	"  output_tokens INTEGER,\n"
	"  cached_tokens INTEGER,\n"
	"  reasoning_tokens INTEGER,\n"
	"  usage TEXT,                      -- whole, partial: a lower bound; NULL: none was reported\n"
	"  attempts INTEGER NOT NULL,\n"
	"  billed INTEGER NOT NULL,         -- attempts with a 2xx and usage\n"
	"  wasted_tokens INTEGER NOT NULL,  -- usage of attempts whose answer is not the recorded one\n"
	"  result BLOB,                     -- only with --keep-results, once and commit\n"
	"  result_sha TEXT,\n"
	"  result_attempt TEXT,             -- attempts.id\n"
	"  owner TEXT,                      -- of a pending row: observed, reserve, once\n"
	"  owner_pid INTEGER,\n"
	"  owner_ns_pid INTEGER,            -- the same process inside its pid namespace\n"
	"  owner_start_ns INTEGER,\n"
	"  owner_boot TEXT,\n"
	"  lease REAL,                      -- until then\n"
	"  created_at REAL NOT NULL,\n"
	"  updated_at REAL NOT NULL\n"
	");\n"
	"CREATE INDEX calls_pending ON calls(key) WHERE status = 'pending';\n"
	"CREATE TABLE attempts (\n"
	"  seq INTEGER PRIMARY KEY,\n"
	"  id TEXT NOT NULL,                -- as in ledger and events\n"
	"  id_number INTEGER NOT NULL UNIQUE, -- its first 8 bytes: an index of 1/4 of the size, and all of it is random\n"
	"  key TEXT,                        -- NULL: its body was not seen whole\n"
	"  run TEXT NOT NULL,\n"
	"  t REAL NOT NULL,                 -- first byte of the request\n"
	"  sent_at REAL, status_at REAL, complete_at REAL, closed_at REAL,\n"
	"  outcome TEXT,                    -- NULL: open; answered, status, failed, cut, not_delivered, no_answer, client_gave_up, ...\n"
	"  over INTEGER NOT NULL,           -- nothing more will come of it\n"
	"  status INTEGER,                  -- HTTP\n"
	"  delivered TEXT, closed_first TEXT,\n"
	"  response_complete INTEGER NOT NULL, answer_complete INTEGER NOT NULL,\n"
	"  model TEXT, path TEXT, server TEXT,\n"
	"  pid INTEGER, ns_pid INTEGER, start_ns INTEGER, comm TEXT, uid INTEGER,\n"
	"  prompt_tokens INTEGER, output_tokens INTEGER, cached_tokens INTEGER, cache_write_tokens INTEGER,\n"
	"  reasoning_tokens INTEGER,\n"
	"  usage_final INTEGER,             -- 0: a lower bound\n"
	"  billed INTEGER NOT NULL,\n"
	"  used INTEGER NOT NULL,           -- its answer is the recorded one\n"
	"  holes INTEGER NOT NULL,          -- bytes of request and answer that were not seen\n"
	"  finding TEXT, severity TEXT,     -- what is said of it and an earlier one\n"
	"  parent TEXT,                     -- id of the attempt that a gateway passed on with this one: both are one\n"
	"  flags INTEGER NOT NULL, idem TEXT, idem_state INTEGER NOT NULL,\n"
	"  fingerprint BLOB, prompt_fingerprint BLOB, principal BLOB, key_scope BLOB\n"
	");\n"
	"CREATE INDEX attempts_t ON attempts(t);\n"
	"CREATE INDEX attempts_open ON attempts(key) WHERE outcome IS NULL;\n"
	"CREATE INDEX attempts_spare ON attempts(key) WHERE outcome = 'answered' AND used = 0 AND parent IS NULL;\n"
	"CREATE INDEX attempts_parent ON attempts(parent) WHERE parent IS NOT NULL;\n"
	"CREATE TABLE findings (\n"
	"  attempt_seq INTEGER NOT NULL,    -- attempts.seq\n"
	"  alone INTEGER NOT NULL,          -- of one attempt, not of a pair\n"
	"  finding TEXT NOT NULL,\n"
	"  severity TEXT,                   -- NULL: undecidable\n"
	"  earlier_id TEXT,\n"
	"  attempt INTEGER, attempts INTEGER,\n"
	"  cross_process INTEGER NOT NULL,\n"
	"  rule TEXT,\n"
	"  t REAL NOT NULL,\n"
	"  PRIMARY KEY (attempt_seq, alone)\n"
	") WITHOUT ROWID;\n"
	"CREATE TABLE blind (\n"
	"  run TEXT NOT NULL, t REAL NOT NULL, kind TEXT NOT NULL, pid INTEGER NOT NULL, comm TEXT,\n"
	"  bytes_out INTEGER NOT NULL, bytes_in INTEGER NOT NULL,\n"
	"  PRIMARY KEY (run, t, pid, kind, bytes_out, bytes_in)\n"
	") WITHOUT ROWID;\n"
	"CREATE TABLE runs (\n"
	"  run TEXT PRIMARY KEY NOT NULL,\n"
	"  started_at REAL NOT NULL,\n"
	"  ended_at REAL,                   -- NULL: it goes on, or ended unclean\n"
	"  boot TEXT NOT NULL,\n"
	"  blind_streams INTEGER NOT NULL, hole_bytes INTEGER NOT NULL\n"
	");\n",
};

#define CALL_COLUMNS \
	"status, reason, model, schema_version, process, path, prompt_tokens, output_tokens, cached_tokens, " \
	"reasoning_tokens, usage, attempts, billed, wasted_tokens, result_attempt, owner, owner_pid, owner_ns_pid, " \
	"owner_start_ns, owner_boot, lease, created_at, updated_at"

const char *const store_statements[STATEMENT_COUNT] = {
	[STATEMENT_ADD_ATTEMPT] =
		"INSERT INTO attempts (id, key, run, t, sent_at, status_at, complete_at, closed_at, outcome, over, status,"
		" delivered, closed_first, response_complete, answer_complete, model, path, server, pid, ns_pid, start_ns,"
		" comm, uid, prompt_tokens, output_tokens, cached_tokens, cache_write_tokens, reasoning_tokens, usage_final,"
		" billed, holes, flags, idem, idem_state, fingerprint, prompt_fingerprint, principal, key_scope, used,"
		" finding, severity, id_number)"
		" VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20,?21,?22,?23,?24,?25,?26,"
		"?27,?28,?29,?30,?31,?32,?33,?34,?35,?36,?37,?38,?39,?40,?41,?42) ON CONFLICT (id_number) DO NOTHING",
	[STATEMENT_FIND_ATTEMPT] = "SELECT seq, over, billed, used, prompt_tokens, output_tokens, parent IS NOT NULL, outcome IS 'answered' FROM attempts WHERE id_number = ?1",
	[STATEMENT_CHANGE_ATTEMPT] =
		"UPDATE attempts SET sent_at = ?5, status_at = ?6, complete_at = ?7, closed_at = ?8, outcome = ?9, over = ?10,"
		" status = ?11, delivered = ?12, closed_first = ?13, response_complete = ?14, answer_complete = ?15,"
		" prompt_tokens = ?24, output_tokens = ?25, cached_tokens = ?26, cache_write_tokens = ?27,"
		" reasoning_tokens = ?28, usage_final = ?29, billed = ?30, holes = ?31, flags = ?32 WHERE seq = ?39",
	[STATEMENT_USE_ATTEMPT] = "UPDATE attempts SET used = ?2 WHERE seq = ?1",
	[STATEMENT_OPEN_ATTEMPT] =
		"SELECT pid, ns_pid, start_ns FROM attempts WHERE key = ?1 AND outcome IS NULL ORDER BY seq DESC LIMIT 1",
	[STATEMENT_SPARE_ATTEMPT] =
		"SELECT seq, id, billed, prompt_tokens, output_tokens, cached_tokens, reasoning_tokens, usage_final FROM attempts"
		" WHERE key = ?1 AND outcome = 'answered' AND used = 0 AND parent IS NULL ORDER BY billed DESC, seq LIMIT 1",
	[STATEMENT_FIND_CALL] = "SELECT " CALL_COLUMNS ", result IS NOT NULL, rowid FROM calls WHERE key = ?1",
	[STATEMENT_ADD_CALL] =
		"INSERT INTO calls (" CALL_COLUMNS ", key)"
		" VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20,?21,?22,?23,?24)",
	[STATEMENT_CHANGE_CALL] =
		"UPDATE calls SET status = ?1, reason = ?2, model = ?3, process = ?5, path = ?6,"
		" prompt_tokens = ?7, output_tokens = ?8, cached_tokens = ?9, reasoning_tokens = ?10, usage = ?11,"
		" attempts = ?12, billed = ?13, wasted_tokens = ?14, result_attempt = ?15, owner = ?16, owner_pid = ?17,"
		" owner_ns_pid = ?18, owner_start_ns = ?19, owner_boot = ?20, lease = ?21, updated_at = ?23 WHERE rowid = ?25",
	[STATEMENT_KEEP_RESULT] = "UPDATE calls SET result = ?2, result_sha = ?3 WHERE key = ?1",
	[STATEMENT_PUT_FINDING] =
		"INSERT INTO findings (attempt_seq, alone, finding, severity, earlier_id, attempt, attempts, cross_process, rule, t)"
		" VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10) ON CONFLICT (attempt_seq, alone) DO UPDATE SET finding = ?3,"
		" severity = ?4, earlier_id = ?5, attempt = ?6, attempts = ?7, cross_process = ?8, rule = ?9, t = ?10",
	[STATEMENT_DROP_FINDING] = "DELETE FROM findings WHERE attempt_seq = ?1 AND alone = 0",
	[STATEMENT_NOTE_FINDING] = "UPDATE attempts SET finding = ?2, severity = ?3 WHERE seq = ?1 AND (finding IS NOT ?2 OR severity IS NOT ?3)",
	[STATEMENT_PUT_BLIND] = "INSERT OR IGNORE INTO blind (run, t, kind, pid, comm, bytes_out, bytes_in) VALUES (?1,?2,?3,?4,?5,?6,?7)",
	[STATEMENT_PUT_RUN] =
		"INSERT INTO runs (run, started_at, ended_at, boot, blind_streams, hole_bytes) VALUES (?1,?2,?3,?4,?5,?6)"
		" ON CONFLICT (run) DO UPDATE SET ended_at = coalesce(?3, ended_at), blind_streams = max(blind_streams, ?5),"
		" hole_bytes = max(hole_bytes, ?6)",
};
