/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opening, transactions, and errors in words. A transaction begins as a writer
 * (BEGIN IMMEDIATE): one that began as a reader could find at its first write
 * that it is too late, which no waiting cures.
 */
#include "store_private.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUSY_MS 20000
#define RETRY_MS 5

/* ---- errors ---- */

static int errno_of(int code)
{
	switch (code & 0xff) {
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return EBUSY;
	case SQLITE_FULL:
		return ENOSPC;
	case SQLITE_READONLY:
	case SQLITE_PERM:
	case SQLITE_AUTH:
		return EROFS;
	case SQLITE_NOTADB:
	case SQLITE_CORRUPT:
		return EBADMSG;
	case SQLITE_NOMEM:
		return ENOMEM;
	case SQLITE_ERROR:
	case SQLITE_CONSTRAINT:
	case SQLITE_MISMATCH:
	case SQLITE_TOOBIG:
		return EINVAL;
	default:
		return EIO;
	}
}

static const char *remedy(int err)
{
	switch (err) {
	case EBUSY:
		return "another program holds its lock: end that program's transaction";
	case ENOSPC:
		return "make room on the disk";
	case EROFS:
		return "make the file and its directory writable, or give another file";
	case EBADMSG:
		return "it is no store or is damaged: keep a copy and try `sqlite3 FILE .recover`, or give another file";
	case ENOMEM:
		return "free some memory";
	case EINVAL:
		return "the row cannot be written: please report it";
	default:
		return "look at the disk, or give another file";
	}
}

int store_failed(struct store *store, const char *doing)
{
	int code = store->db ? sqlite3_extended_errcode(store->db) : SQLITE_NOMEM;
	int err = errno_of(code);

	snprintf(store->reason, sizeof(store->reason), "cannot %s %s: %s; %s", doing, store->path,
		 store->db ? sqlite3_errmsg(store->db) : "out of memory", remedy(err));
	return -err;
}

const char *store_reason(const struct store *store)
{
	return store->reason;
}

/* ---- statements ---- */

int store_execute(struct store *store, const char *sql)
{
	return sqlite3_exec(store->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : store_failed(store, "write to");
}

sqlite3_stmt *store_prepare(struct store *store, const char *sql)
{
	sqlite3_stmt *statement = NULL;

	if (sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL) != SQLITE_OK)
		store_failed(store, "read");
	return statement;
}

int store_finish(struct store *store, sqlite3_stmt *statement, const char *doing)
{
	return sqlite3_finalize(statement) == SQLITE_OK ? 0 : store_failed(store, doing);
}

sqlite3_stmt *store_statement(struct store *store, enum store_statement which)
{
	sqlite3_stmt **statement = &store->statement[which];

	if (!*statement && sqlite3_prepare_v3(store->db, store_statements[which], -1, SQLITE_PREPARE_PERSISTENT, statement,
					      NULL) != SQLITE_OK) {
		store_failed(store, "read");
		return NULL;
	}
	sqlite3_reset(*statement);
	sqlite3_clear_bindings(*statement);
	return *statement;
}

int store_run(struct store *store, sqlite3_stmt *statement)
{
	int code = sqlite3_step(statement);
	int err = code == SQLITE_DONE || code == SQLITE_ROW ? 0 : store_failed(store, "write to");

	sqlite3_reset(statement);
	return err;
}

int store_begin(struct store *store)
{
	return store_execute(store, "BEGIN IMMEDIATE");
}

int store_end(struct store *store, int err)
{
	if (!err)
		err = store_execute(store, "COMMIT");
	if (err && !sqlite3_get_autocommit(store->db))
		sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
	return err;
}

void store_bind_time(sqlite3_stmt *statement, int index, int64_t ns)
{
	if (ns)
		sqlite3_bind_double(statement, index, (double)ns / 1e9);
}

void store_bind_count(sqlite3_stmt *statement, int index, int64_t value)
{
	if (value >= 0)
		sqlite3_bind_int64(statement, index, value);
}

void store_bind_text(sqlite3_stmt *statement, int index, const char *text)
{
	if (text && *text)
		sqlite3_bind_text(statement, index, text, -1, SQLITE_STATIC);
}

void store_bind_blob(sqlite3_stmt *statement, int index, const uint8_t *bytes, bool there)
{
	if (there)
		sqlite3_bind_blob(statement, index, bytes, DIGEST_BYTES, SQLITE_STATIC);
}

int64_t store_column_time(sqlite3_stmt *statement, int index)
{
	return (int64_t)(sqlite3_column_double(statement, index) * 1e9);
}

int64_t store_column_count(sqlite3_stmt *statement, int index)
{
	return sqlite3_column_type(statement, index) == SQLITE_NULL ? -1 : sqlite3_column_int64(statement, index);
}

const char *store_column_text(sqlite3_stmt *statement, int index)
{
	return (const char *)sqlite3_column_text(statement, index);
}

/* ---- schema ---- */

static int read_number(struct store *store, const char *sql, int64_t *ret_number)
{
	sqlite3_stmt *statement = store_prepare(store, sql);

	if (!statement)
		return -errno_of(sqlite3_errcode(store->db));
	if (sqlite3_step(statement) == SQLITE_ROW)
		*ret_number = sqlite3_column_int64(statement, 0);
	return store_finish(store, statement, "read");
}

/* An empty file, a store of this version or an older one; else a reason. */
static int look_at_schema(struct store *store, int count, int64_t *ret_version)
{
	int64_t application = 0, tables = 0;
	int err = read_number(store, "PRAGMA user_version", ret_version);

	if (!err)
		err = read_number(store, "PRAGMA application_id", &application);
	if (!err)
		err = read_number(store, "SELECT COUNT(*) FROM sqlite_schema", &tables);
	if (err)
		return err;
	if (application != STORE_APPLICATION_ID && (application || tables || *ret_version)) {
		snprintf(store->reason, sizeof(store->reason),
			 "%s is a database of another program; give another file, nothing was changed in it", store->path);
		return -EBADMSG;
	}
	if (*ret_version > count) {
		snprintf(store->reason, sizeof(store->reason),
			 "%s was written by a newer nightclerk: its schema is %lld, this one knows %d; use the newer "
			 "nightclerk, or give another file",
			 store->path, (long long)*ret_version, count);
		return -EPROTONOSUPPORT;
	}
	return 0;
}

int store_migrate(struct store *store, const char *const *steps, int count)
{
	char versions[128];
	int64_t version = 0;
	int err = look_at_schema(store, count, &version);

	if (err || version == count)
		return err;
	err = store_begin(store);
	if (err)
		return err;
	err = look_at_schema(store, count, &version); /* somebody may have been faster */
	for (int64_t i = version; !err && i < count; i++)
		err = store_execute(store, steps[i]);
	snprintf(versions, sizeof(versions), "PRAGMA user_version = %d; PRAGMA application_id = %d", count,
		 STORE_APPLICATION_ID);
	if (!err)
		err = store_execute(store, versions);
	return store_end(store, err);
}

/* ---- opening ---- */

static int open_and_set_up(struct store *store, const struct store_options *options);

/*
 * A new store comes into being under another name and appears whole: the first
 * steps of a database lock everybody out. Who comes second leaves it.
 */
static int make_new(const struct store_options *options, char *reason)
{
	struct store_options as = *options;
	struct store making = {0};
	char *path;
	int fd, err;

	if (asprintf(&path, "%s.new-%ld", options->path, (long)getpid()) < 0) {
		snprintf(reason, STORE_REASON_MAX, "out of memory");
		return -ENOMEM;
	}
	fd = output_owner_open(&options->owner, path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0) {
		snprintf(reason, STORE_REASON_MAX, "cannot open %s: %s; %s", options->path, strerror(-fd), output_remedy(-fd));
		free(path);
		return fd;
	}
	close(fd);
	as.path = making.path = path;
	err = open_and_set_up(&making, &as);
	if (making.db)
		sqlite3_db_config(making.db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
	sqlite3_close(making.db);
	if (err)
		snprintf(reason, STORE_REASON_MAX, "%s", making.reason);
	else if (link(path, options->path) && errno != EEXIST && rename(path, options->path)) /* not every file system links */
		err = -errno;
	if (err && !making.reason[0])
		snprintf(reason, STORE_REASON_MAX, "cannot open %s: %s; %s", options->path, strerror(-err), output_remedy(-err));
	output_owner_unlink(&options->owner, path);
	free(path);
	return err;
}

/* With the rights of its owner; SQLite gives -wal and -shm the mode and the owner of the file. */
static int look_at_file(const struct store_options *options, char *reason)
{
	int fd = output_owner_open(&options->owner, options->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	struct stat stat;

	if (fd == -ENOENT && options->create)
		return make_new(options, reason);
	if (fd == -ENOENT) {
		snprintf(reason, STORE_REASON_MAX, "there is no store at %s; `nightclerk run --db %s -- COMMAND` makes one",
			 options->path, options->path);
		return fd;
	}
	if (fd < 0) {
		snprintf(reason, STORE_REASON_MAX, "cannot open %s: %s; %s", options->path, strerror(-fd), output_remedy(-fd));
		return fd;
	}
	if (fstat(fd, &stat) || !S_ISREG(stat.st_mode)) {
		snprintf(reason, STORE_REASON_MAX, "cannot open %s: it is no regular file; give another one", options->path);
		close(fd);
		return -EINVAL;
	}
	close(fd);
	return 0;
}

/* Symbolic links in the directory are the user's business, one in place of the file is refused. */
static int open_database(struct store *store)
{
	char *directory = strdup(store->path), *real = NULL, *path = NULL;
	char *slash = directory ? strrchr(directory, '/') : NULL;
	const char *name = slash ? slash + 1 : directory;
	int err = 0;

	if (directory && slash == directory)
		real = strdup("");
	else if (directory) {
		if (slash)
			*slash = '\0';
		real = realpath(slash ? directory : ".", NULL);
	}
	if (!real || asprintf(&path, "%s/%s", real, name) < 0)
		err = -ENOMEM;
	if (!err && sqlite3_open_v2(path, &store->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_NOMUTEX,
				    NULL) != SQLITE_OK)
		err = store_failed(store, "open");
	else if (err)
		snprintf(store->reason, sizeof(store->reason), "cannot open %s: out of memory", store->path);
	free(path);
	free(real);
	free(directory);
	return err;
}

/* Settings that may meet a lock for which SQLite does not wait by itself. */
static int execute_patiently(struct store *store, const char *sql, int busy_ms)
{
	int err;

	do {
		err = store_execute(store, sql);
		if (err == -EBUSY)
			poll(NULL, 0, RETRY_MS);
		busy_ms -= RETRY_MS;
	} while (err == -EBUSY && busy_ms > 0);
	return err;
}

static const char *memory_of(const struct store_options *options)
{
	if (options->bulk)
		return "PRAGMA cache_size = -131072; PRAGMA wal_autocheckpoint = 40000";
	if (options->small)
		return "PRAGMA cache_size = -2048; PRAGMA wal_autocheckpoint = 1000; PRAGMA temp_store = MEMORY";
	return "PRAGMA cache_size = -65536; PRAGMA wal_autocheckpoint = 4000";
}

static int set_up(struct store *store, const struct store_options *options)
{
	int busy_ms = options->busy_ms ? options->busy_ms : BUSY_MS;
	int64_t pages = 0;
	int err;

	sqlite3_extended_result_codes(store->db, 1);
	sqlite3_busy_timeout(store->db, busy_ms);
	/* The last one to leave would lock everybody out while it tidies up. */
	sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	err = read_number(store, "PRAGMA page_count", &pages);
	if (!err && pages == 0) /* each time it is said it is written */
		err = execute_patiently(store, "PRAGMA auto_vacuum = INCREMENTAL", busy_ms);
	if (!err)
		err = execute_patiently(store, "PRAGMA journal_mode = WAL", busy_ms);
	if (!err)
		err = store_execute(store, options->durable ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL");
	if (!err)
		err = store_execute(store, memory_of(options));
	return err ? err : store_migrate(store, store_migrations, STORE_VERSION);
}

static int open_and_set_up(struct store *store, const struct store_options *options)
{
	int err = open_database(store);

	return err ? err : set_up(store, options);
}

/* Its random numbers come out of /dev/urandom, once. */
void store_warm_up(void)
{
	char byte;

	sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); /* nobody asks; refused, and no matter, once SQLite is in use */
	sqlite3_initialize();
	sqlite3_randomness(sizeof(byte), &byte);
}

int store_open(const struct store_options *options, struct store **ret_store, char *reason)
{
	struct store *store;
	int err = look_at_file(options, reason);

	if (err)
		return err;
	sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); /* nobody asks; refused, and no matter, once SQLite is in use */
	store = calloc(1, sizeof(*store));
	if (!store || !(store->path = strdup(options->path))) {
		free(store);
		snprintf(reason, STORE_REASON_MAX, "out of memory");
		return -ENOMEM;
	}
	err = open_and_set_up(store, options);
	if (err) {
		snprintf(reason, STORE_REASON_MAX, "%s", store->reason);
		store_close(store);
		return err;
	}
	*ret_store = store;
	return 0;
}

void store_tidy(struct store *store)
{
	sqlite3_exec(store->db, "PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL);
}

bool store_has_moved(struct store *store)
{
	int moved = 0;

	return sqlite3_file_control(store->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK && moved;
}

void store_close(struct store *store)
{
	if (!store)
		return;
	for (int i = 0; i < STATEMENT_COUNT; i++)
		sqlite3_finalize(store->statement[i]);
	sqlite3_close(store->db);
	free(store->path);
	free(store);
}
