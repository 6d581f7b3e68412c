/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The start and the end of an observer: facts of the run, stages, the canary, and
 * the way back.
 */
#include "observer_parts.h"
#include "cgroup.h"
#include "clock.h"
#include "own_limits.h"
#include "process.h"

#include <errno.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/utsname.h>
#include <unistd.h>

#define CANARY_NS (30 * 1000 * 1000 * 1000ULL) /* longest wait: an emulated machine takes seconds */
#define CANARY_TRIES 3			/* a stalled machine may make one miss */
#define CANARY_AFTER_NS (200 * 1000 * 1000ULL) /* its children have ended: what they sent is due by then */

static int fill_facts(struct observer *observer)
{
	const struct observer_options *options = &observer->options;
	struct run_facts *facts = &observer->facts;
	struct utsname kernel;
	uint8_t run_id[8];

	process_boot_id(facts->boot_id);
	if (getrandom(facts->salt, sizeof(facts->salt), 0) != sizeof(facts->salt) ||
	    getrandom(run_id, sizeof(run_id), 0) != sizeof(run_id))
		return -errno;
	hex_of(run_id, sizeof(run_id), facts->run_id);
	snprintf(facts->version, sizeof(facts->version), "%s", NIGHTCLERK_VERSION);
	snprintf(facts->scope, sizeof(facts->scope), "%s", options->scope);
	/* Where it is not seen nothing is written at all, so this may be said beforehand. */
	snprintf(facts->canary, sizeof(facts->canary), "%s", options->canary ? "seen" : "none");
	snprintf(facts->command, sizeof(facts->command), "%s", options->command ? options->command : "");
	facts->argument_count = options->argument_count;
	if (uname(&kernel) == 0)
		snprintf(facts->kernel, sizeof(facts->kernel), "%.64s", kernel.release);
	if (options->pipeline.policy)
		facts->policy = policy_text(options->pipeline.policy);
	facts->start_ns = clock_monotonic_ns();
	facts->wall_offset_ns = observer->wall_offset_ns = clock_wall_offset_ns();
	return judge_options_to_json(&options->pipeline.judge, facts->options, sizeof(facts->options));
}

/* The canary has been heard, or the reason why not. */
static int await_canary(struct observer *observer, char *reason)
{
	uint64_t now_ns = clock_monotonic_ns(), deadline_ns = now_ns + CANARY_NS;
	struct pollfd ring = {.fd = capture_fd(observer->capture), .events = POLLIN};
	char cause[CANARY_REASON_MAX] = "";
	bool over = false;

	while (!canary_seen(observer->canary) && now_ns < deadline_ns) {
		poll(&ring, 1, OBSERVER_PERIOD_MS);
		now_ns = clock_monotonic_ns();
		capture_drain(observer->capture, observer->sequencer);
		observer_let_through(observer, now_ns, now_ns);
		if (!over && canary_over(observer->canary, cause)) {
			over = true;
			deadline_ns = now_ns + CANARY_AFTER_NS + SEQUENCER_HOLD_NS;
		}
		if (*cause)
			break;
	}
	if (canary_seen(observer->canary))
		return 0;
	if (*cause)
		snprintf(reason, OUTPUT_REASON_MAX, "%s", cause);
	else
		snprintf(reason, OUTPUT_REASON_MAX,
			 "the probes load but do not fire (door %s): a known call over loopback was not seen; "
			 "`nightclerk doctor` says what this kernel allows",
			 observer->facts.door);
	return -ENODATA;
}

static int try_canary(struct observer *observer, char *reason)
{
	uint32_t client, server;
	int err = canary_start(&observer->canary, &client, &server, reason);

	if (err)
		return err;
	err = capture_set_canary(observer->capture, client, server);
	if (err)
		snprintf(reason, OUTPUT_REASON_MAX, "the canary could not be put in scope: %s", strerror(-err));
	if (!err) {
		canary_release(observer->canary);
		err = await_canary(observer, reason);
	}
	capture_set_canary(observer->capture, 0, 0);
	canary_free(observer->canary);
	observer->canary = NULL;
	return err;
}

static int prove_canary(struct observer *observer, char *reason)
{
	int err = -ENODATA;

	for (int i = 0; i < CANARY_TRIES && err == -ENODATA; i++)
		err = try_canary(observer, reason);
	return err;
}

static void open_control(struct observer *observer)
{
	int err = control_open(observer_admits, observer, &observer->control);

	if (err)
		fprintf(stderr, "nightclerk: mark and sync will not work: %s, continuing\n", strerror(-err));
}

static int open_stages(struct observer *observer, char *reason)
{
	int err;

	observer->sequencer = sequencer_new();
	observer->cgroups = cgroup_names_new();
	observer->options.pipeline.no_events = !observer->options.events;
	observer->pipeline = pipeline_new(&observer->facts, &observer->options.pipeline, &observer->out);
	if (!observer->sequencer || !observer->pipeline || !observer->cgroups) {
		snprintf(reason, OUTPUT_REASON_MAX, "out of memory");
		return -ENOMEM;
	}
	observer_load_past(observer);
	if (observer->options.canary) {
		err = prove_canary(observer, reason);
		if (err)
			return err;
	}
	err = observer_start_store_writer(observer, reason); /* its thread comes after the canary's fork */
	if (err)
		return err;
	if (observer->options.control)
		open_control(observer);
	return 0;
}

/* What a run with --confine left behind that was killed. */
static void sweep(void)
{
	size_t count = geteuid() == 0 ? cgroup_sweep() : 0;

	if (count)
		fprintf(stderr, "nightclerk: removed %zu cgroup%s that an earlier run left behind\n", count,
			count == 1 ? "" : "s");
}

int observer_open(const struct observer_options *options, struct observer **ret_observer, char *reason)
{
	struct observer *observer = calloc(1, sizeof(*observer));
	int err;

	if (!observer) {
		snprintf(reason, OUTPUT_REASON_MAX, "out of memory");
		return -ENOMEM;
	}
	err = own_limits_prepare(options->capture.data_ring_bytes, reason);
	if (err) {
		free(observer);
		return err;
	}
	sweep();
	heap_open(&observer->heap);
	observer->options = *options;
	observer->options.pipeline.junit = options->junit != NULL;
	observer->options.pipeline.bookings = options->db != NULL;
	snprintf(reason, OUTPUT_REASON_MAX, "no random numbers to be had");
	err = fill_facts(observer);
	if (!err)
		err = observer_keep_files_apart(options, reason); /* before SQLite takes one for its own */
	if (!err)
		observer_open_store(observer);
	if (!err)
		err = capture_open(&options->capture, &observer->capture, reason);
	if (!err) {
		snprintf(observer->facts.door, sizeof(observer->facts.door), "%s",
			 capture_door_name(capture_door(observer->capture)));
		err = observer_open_files(observer, reason);
	}
	if (!err)
		err = open_stages(observer, reason);
	if (err) {
		observer_close(observer);
		return err;
	}
	*ret_observer = observer;
	return 0;
}

static void close_control(struct observer *observer)
{
	uint64_t refused = observer->control ? control_refused(observer->control) : 0;

	while (observer->waiting_count)
		control_answer(&observer->waiting[--observer->waiting_count].request, CONTROL_REFUSED);
	control_close(observer->control);
	if (refused)
		fprintf(stderr, "nightclerk: %llu mark or sync request%s of processes outside the run %s refused\n",
			(unsigned long long)refused, refused == 1 ? "" : "s", refused == 1 ? "was" : "were");
}

void observer_close(struct observer *observer)
{
	int err;

	if (!observer)
		return;
	close_control(observer);
	capture_close(observer->capture);
	sequencer_free(observer->sequencer);
	pipeline_free(observer->pipeline);
	err = recording_writer_free(observer->recording);
	if (err)
		fprintf(stderr, "nightclerk: the recording is not whole: %s\n", strerror(-err));
	observer_close_files(observer);
	store_writer_free(observer->store_writer);
	store_close(observer->store);
	bookings_clear(&observer->out.bookings);
	buffer_done(&observer->out.bookings);
	buffer_done(&observer->out.ledger);
	buffer_done(&observer->out.events);
	buffer_done(&observer->out.alerts);
	buffer_done(&observer->out.calls);
	buffer_done(&observer->out.junit);
	cgroup_names_free(observer->cgroups);
	heap_close(&observer->heap);
	free(observer);
}
