/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `nightclerk reserve`, `commit`, `get`, `release`: a job asks before it calls.
 */
#include "asked.h"
#include "commands.h"

#include <errno.h>

static int print_result(const struct asking *asking)
{
	int err = asked_print(buffer_bytes(&asking->result));

	if (err)
		fprintf(stderr, "nightclerk: cannot write: %s\n", strerror(-err));
	return err ? 1 : 0;
}

/* An answer that the wire saw is kept with --keep-results alone, and only up to a size. */
static int done_but_not_kept(const struct asking *asking)
{
	fprintf(stderr, "nightclerk %s: it is done, but no result was kept\n", command_line_verb_name(asking->verb));
	return EXIT_DONE;
}

static int reserve(struct asking *asking)
{
	struct store_claim claim = asking_claim(asking, "reserve");
	enum store_answer answer;
	bool has_result;

	if (store_reserve(asking->store, &claim, &answer, &asking->result, &has_result))
		return asking_failed(asking, 1);
	if (answer == STORE_RESERVED)
		return 0;
	if (answer == STORE_PENDING)
		return EXIT_PENDING;
	if (!has_result)
		return done_but_not_kept(asking);
	return print_result(asking) ? 1 : EXIT_DONE;
}

static int commit(struct asking *asking)
{
	struct store_claim claim = asking_claim(asking, "reserve");
	const char *file = asking->line.result;
	bool first;

	if (file && asked_file(file, &asking->result))
		return 1;
	if (store_commit(asking->store, &claim, buffer_bytes(&asking->result), file != NULL, &first))
		return asking_failed(asking, 1);
	if (!first)
		fprintf(stderr, "nightclerk commit: it was done already; the first result stays\n");
	return 0;
}

static int get(struct asking *asking)
{
	enum store_answer answer;
	bool has_result;

	if (store_get(asking->store, asking->key, &answer, &asking->result, &has_result))
		return asking_failed(asking, 1);
	if (answer == STORE_DONE && has_result)
		return print_result(asking);
	return answer == STORE_DONE ? done_but_not_kept(asking) : answer == STORE_PENDING ? EXIT_PENDING : EXIT_ABSENT;
}

static int release(struct asking *asking)
{
	struct store_claim claim = asking_claim(asking, "reserve");
	enum store_release release;

	if (store_release(asking->store, &claim, "released", &release))
		return asking_failed(asking, 1);
	if (release == STORE_HELD_BY_ANOTHER) {
		fprintf(stderr, "nightclerk release: another process has reserved it and is still there; it stays reserved "
				"until that one gives it back or ends, or the lease is over\n");
		return EXIT_PENDING;
	}
	if (release == STORE_NOT_RESERVED)
		fprintf(stderr, "nightclerk release: nobody had reserved it\n");
	return 0;
}

static int run(enum command_line_verb verb, int argc, char **argv, int (*act)(struct asking *asking))
{
	bool create = verb == COMMAND_LINE_RESERVE || verb == COMMAND_LINE_COMMIT;
	struct asking asking;
	int status = asking_start(verb, argc, argv, &asking);

	if (status)
		status--;
	else if ((status = asking_open(&asking, create, 1)) == 0)
		status = act(&asking);
	asking_done(&asking);
	return status;
}

int cmd_reserve(int argc, char **argv)
{
	return run(COMMAND_LINE_RESERVE, argc, argv, reserve);
}

int cmd_commit(int argc, char **argv)
{
	return run(COMMAND_LINE_COMMIT, argc, argv, commit);
}

int cmd_get(int argc, char **argv)
{
	return run(COMMAND_LINE_GET, argc, argv, get);
}

int cmd_release(int argc, char **argv)
{
	return run(COMMAND_LINE_RELEASE, argc, argv, release);
}
