/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which of many stores are open. A file is opened once in this process: a second
 * descriptor of it, closed, would take the locks of the first one away (fcntl(2)).
 */
#include "stores_private.h"
#include "clock.h"

#include <errno.h>

#define BUSY_MS 100 /* then the others have their turn */
#define SWEEP_NS (3600 * 1000000000LL)

void stores_close_file(struct stores *stores, struct stored *stored)
{
	size_t at = 0;

	if (!stored->store)
		return;
	while (stores->open[at] != stored)
		at++;
	stores->open_count--;
	memmove(&stores->open[at], &stores->open[at + 1], (stores->open_count - at) * sizeof(stored));
	store_tidy(stored->store); /* what is in its log belongs to this file, not to one that takes its name */
	store_close(stored->store);
	stored->store = NULL;
}

void stores_close_all(struct stores *stores)
{
	while (stores->open_count)
		stores_close_file(stores, stores->open[0]);
}

/* A tenant that has ended and whose rows wait, while one of its name has come. */
static void close_namesake(struct stores *stores, const struct stored *stored)
{
	for (size_t i = 0; i < stores->open_count; i++)
		if (strcmp(stores->open[i]->path, stored->path) == 0) {
			stores_close_file(stores, stores->open[i]);
			return;
		}
}

int stores_open_file(struct stores *stores, struct stored *stored, bool create, char *reason)
{
	const struct store_options options = {
		.path = stored->path, .owner = {(uid_t)-1, (gid_t)-1}, .create = create, .small = true, .busy_ms = BUSY_MS};
	struct store *store = NULL;
	size_t at = 0;
	int err;

	if (stored->store && store_has_moved(stored->store))
		stores_close_file(stores, stored);
	if (stored->store) {
		while (stores->open[at] != stored)
			at++;
		memmove(&stores->open[at], &stores->open[at + 1], (stores->open_count - 1 - at) * sizeof(stored));
		stores->open[stores->open_count - 1] = stored;
		return 0;
	}
	close_namesake(stores, stored);
	if (stores->open_count == STORES_OPEN_MAX)
		stores_close_file(stores, stores->open[0]);
	err = store_open(&options, &store, reason);
	if (err)
		return err;
	stored->store = store;
	stores->open[stores->open_count++] = stored;
	return 0;
}

/* True where it is worth another try on the same open file. */
static bool file_is_sound(int err)
{
	return !err || err == -EBUSY || err == -EINVAL;
}

int stores_write_file(struct stores *stores, struct stored *stored, uint64_t *ret_rows, char *reason)
{
	int err = stores_open_file(stores, stored, true, reason);

	if (err)
		return err;
	err = store_book(stored->store, &stored->run, &stored->batch, ret_rows);
	if (err)
		snprintf(reason, STORE_REASON_MAX, "%s", store_reason(stored->store));
	if (!file_is_sound(err))
		stores_close_file(stores, stored);
	return err;
}

void stores_sweep_file(struct stores *stores, struct stored *stored)
{
	struct store_world world = {.now_ns = clock_wall_ns()};
	struct store_swept swept;
	char reason[STORE_REASON_MAX];

	memcpy(world.boot, stores->options.boot, sizeof(world.boot));
	stored->next_sweep_ns = world.now_ns + SWEEP_NS;
	if (stores_open_file(stores, stored, false, reason) == 0)
		store_sweep(stored->store, &world, stores->options.ttl_ns, &swept);
}
