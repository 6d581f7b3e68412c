/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every input passes one door here (feed), where it is recorded before the
 * pipeline sees it. What the pipeline made is written at the end of each turn.
 */
#include "observer.h"
#include "clock.h"
#include "canary.h"
#include "cgroup.h"
#include "cgroup_names.h"
#include "control.h"
#include "gate.h"
#include "process.h"
#include "store_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#define TICK_NS (100 * 1000 * 1000ULL)
#define COUNTERS_NS (1000 * 1000 * 1000ULL)
#define CANARY_NS (30 * 1000 * 1000 * 1000ULL) /* longest wait: an emulated machine takes seconds */
#define CANARY_TRIES 3			/* a stalled machine may make one miss */
#define CANARY_AFTER_NS (200 * 1000 * 1000ULL) /* its children have ended: what they sent is due by then */
#define FINISH_NS (100 * 1000 * 1000ULL) /* longest wait for rings that are filled again and again */
#define WAITING_REQUESTS_MAX 64
#define STORE_BUSY_MS 1000   /* then a batch is tried again */
#define STORE_SYNC_NS (1000 * 1000 * 1000ULL)
#define STORE_SETTLE_MS 5000 /* longest wait for the store at the end */
#define PAST_NS (24 * 3600 * 1000000000LL) /* attempts of earlier runs that count; design: across processes */
#define PAST_MAX 20000			   /* the newest of them */

/* A mark or sync that waits until everything sent before it has gone through. */
struct waiting_request {
	struct control_request request;
	uint64_t asked_ns;
};

struct observer {
	struct observer_options options;
	struct run_facts facts;
	struct capture *capture;
	struct sequencer *sequencer;
	struct pipeline *pipeline;
	struct pipeline_output out;
	struct recording_writer *recording;
	struct output *ledger;
	struct output *events;
	struct output *junit;
	struct output *recording_file; /* observer->recording writes to a copy of its descriptor */
	bool begun;		       /* observer_begin(): what was in the files may be gone */
	struct store *store; /* until the writer takes it over */
	struct store_writer *store_writer; /* NULL = none was asked for */
	struct canary *canary; /* while it is being proved */
	struct control *control; /* NULL = mark and sync are not answered */
	struct waiting_request waiting[WAITING_REQUESTS_MAX];
	size_t waiting_count;
	struct cgroup_names *cgroups;
	bool counters_unread;	 /* the last time they should have been */
	uint64_t drain_failures; /* events may be gone without a hole to show it */
	uint64_t next_tick_ns;
	uint64_t next_counters_ns;
	bool write_failed; /* said once, as is what follows */
	bool lines_lost;
	int64_t wall_offset_ns;
};

static int64_t wall_offset(void)
{
	return clock_wall_ns() - (int64_t)clock_monotonic_ns();
}

/* ---- facts of the run ---- */

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
	facts->wall_offset_ns = observer->wall_offset_ns = wall_offset();
	return judge_options_to_json(&options->pipeline.judge, facts->options, sizeof(facts->options));
}

/* ---- writing ---- */

static void write_lines(struct observer *observer, struct output *output, struct buffer *lines)
{
	const char *notice = NULL;
	int err;

	if (!output) {
		buffer_clear(lines);
		return;
	}
	err = output_write(output, buffer_bytes(lines), &notice);
	if (err != -ENOMEM)
		buffer_clear(lines);
	if (notice)
		fprintf(stderr, "nightclerk: %s %s\n", output_path(output), notice);
	if (err && err != -EAGAIN && !observer->write_failed) {
		observer->write_failed = true;
		fprintf(stderr, "nightclerk: cannot write %s: %s; lines are kept in memory and tried again, continuing\n",
			output_path(output), strerror(-err));
	}
	if (output_lost(output) && !observer->lines_lost) {
		observer->lines_lost = true;
		fprintf(stderr, "nightclerk: %s takes nothing and too much waits for it: lines are lost from here, continuing\n",
			output_path(output));
	}
}

/* The last try to write what waits. */
static void close_output(struct output *output)
{
	char *path = output ? strdup(output_path(output)) : NULL;
	uint64_t missing;
	int err;

	if (!output)
		return;
	output_flush(output);
	missing = output_unwritten(output) + output_lost(output);
	err = output_close(output);
	if (err)
		fprintf(stderr, "nightclerk: %s is not whole, %llu bytes are missing: %s\n", path ? path : "an output",
			(unsigned long long)missing, err == -EAGAIN || err == -ENOBUFS ? "it was not read" : strerror(-err));
	free(path);
}

static void write_store(struct observer *observer)
{
	char reason[STORE_REASON_MAX];

	if (!observer->store_writer)
		return;
	store_writer_put(observer->store_writer, &observer->out.bookings, false);
	if (store_writer_notice(observer->store_writer, reason))
		fprintf(stderr, "nightclerk: %s; rows are kept in memory and tried again, continuing\n", reason);
}

/* Everything up to here is in the store, or it is counted as lost. */
static void settle_store(struct observer *observer, struct closing *closing)
{
	struct store_counts counts;

	if (!observer->store_writer)
		return;
	write_store(observer);
	store_writer_settle(observer->store_writer, STORE_SETTLE_MS, &counts);
	closing->has_store = true;
	closing->store_rows = counts.rows;
	closing->store_lost = counts.lost;
}

/* After the last booking. */
static void close_store(struct observer *observer)
{
	struct store_counts counts;

	if (!observer->store_writer)
		return;
	store_writer_settle(observer->store_writer, STORE_SETTLE_MS, &counts);
	if (counts.lost)
		fprintf(stderr, "nightclerk: %llu row%s missing in the store %s%s%s\n", (unsigned long long)counts.lost,
			counts.lost == 1 ? " is" : "s are", observer->options.db, counts.reason[0] ? ": " : "",
			counts.reason);
	store_writer_free(observer->store_writer);
	observer->store_writer = NULL;
}

static void write_out(struct observer *observer)
{
	write_lines(observer, observer->ledger, &observer->out.ledger);
	write_lines(observer, observer->events, &observer->out.events);
	write_lines(observer, observer->junit, &observer->out.junit);
	write_store(observer);
}

/* ---- inputs ---- */

static int feed(struct observer *observer, const struct input *input)
{
	if (observer->recording) {
		int err = recording_write(observer->recording, input);

		if (err) {
			fprintf(stderr, "nightclerk: the recording stops here: %s; the run goes on\n", strerror(-err));
			recording_writer_free(observer->recording);
			observer->recording = NULL;
		}
	}
	return pipeline_feed(observer->pipeline, input);
}

/* The path of its cgroup, before the first input that rests on it. */
static void name_cgroup(struct observer *observer, const struct wire_event *event, uint64_t now_ns)
{
	struct input input = {.kind = INPUT_CGROUP, .now_ns = now_ns, .cgroup = {.id = event->cgroup_id}};
	char path[PATH_MAX];

	if (!cgroup_names_find(observer->cgroups, event->cgroup_id, event->tgid, path, sizeof(path)))
		return;
	input.cgroup.path = bytes_of_string(path);
	feed(observer, &input);
}

static int feed_tick(struct observer *observer, uint64_t now_ns)
{
	struct input input = {.kind = INPUT_TICK, .now_ns = now_ns};

	observer->wall_offset_ns = wall_offset();
	input.tick.wall_offset_ns = observer->wall_offset_ns;
	observer->next_tick_ns = now_ns + TICK_NS;
	return feed(observer, &input);
}

static int drain_rings(struct observer *observer)
{
	int n = capture_drain(observer->capture, observer->sequencer);

	if (n < 0)
		observer->drain_failures++;
	return n;
}

static int feed_counters(struct observer *observer, uint64_t now_ns)
{
	struct input input = {.kind = INPUT_COUNTERS, .now_ns = now_ns};
	int err = capture_counters(observer->capture, &input.counters);

	observer->counters_unread = err != 0;
	input.counters.value[WIRE_COUNTER_LIFECYCLE_LOST] += observer->drain_failures;
	observer->next_counters_ns = now_ns + COUNTERS_NS;
	return err ? err : feed(observer, &input);
}

/* Everything that may leave at until_ns. */
static void let_through(struct observer *observer, uint64_t until_ns, uint64_t now_ns)
{
	struct input input = {.kind = INPUT_WIRE, .now_ns = now_ns};
	uint64_t flow;

	until_ns = capture_settled(observer->capture, until_ns);
	while (sequencer_pull(observer->sequencer, until_ns, &input.wire.event, &input.wire.payload)) {
		if (input.wire.event->flags & WIRE_CANARY) {
			if (observer->canary)
				canary_feed(observer->canary, &input);
			continue;
		}
		name_cgroup(observer, input.wire.event, now_ns);
		feed(observer, &input);
		while ((flow = pipeline_next_muted(observer->pipeline))) {
			capture_mute(observer->capture, flow);
			sequencer_mute(observer->sequencer, flow);
		}
	}
}

/* ---- mark and sync ---- */

static bool admits(void *observer, pid_t pid)
{
	return capture_in_scope(((struct observer *)observer)->capture, (uint32_t)pid);
}

static void take_requests(struct observer *observer, uint64_t now_ns)
{
	struct control_request request;

	while (observer->control && control_next(observer->control, now_ns, &request) > 0) {
		if (observer->waiting_count == WAITING_REQUESTS_MAX)
			control_answer(&request, CONTROL_BUSY);
		else
			observer->waiting[observer->waiting_count++] = (struct waiting_request){request, now_ns};
	}
}

static void grant_first(struct observer *observer, uint64_t now_ns)
{
	struct control_request request = observer->waiting[0].request;
	struct input mark = {.kind = INPUT_MARK, .now_ns = now_ns, .mark = {buffer_bytes(&request.label)}};

	if (request.verb == CONTROL_MARK)
		feed(observer, &mark);
	write_out(observer);
	control_answer(&request, observer_is_short(observer) ? CONTROL_UNWRITTEN : CONTROL_DONE);
	observer->waiting_count--;
	memmove(observer->waiting, observer->waiting + 1, observer->waiting_count * sizeof(observer->waiting[0]));
}

/* A sync is about the store as well, but does not wait for a lock that somebody else holds for long. */
static bool store_has_all(struct observer *observer, uint64_t now_ns)
{
	const struct waiting_request *first = &observer->waiting[0];

	if (!observer->store_writer || first->request.verb != CONTROL_SYNC || now_ns > first->asked_ns + STORE_SYNC_NS)
		return true;
	write_store(observer);
	return store_writer_is_idle(observer->store_writer);
}

/*
 * Up to each request that waits, then the request, then the rest: a mark stands
 * between the calls before it and the calls after it, and a sync is answered
 * when all before it is judged and written.
 */
static void go_through(struct observer *observer, uint64_t now_ns, bool at_end)
{
	while (observer->waiting_count) {
		uint64_t asked_ns = observer->waiting[0].asked_ns;
		uint64_t until_ns = asked_ns + SEQUENCER_WATERMARK_NS;
		uint64_t oldest_ns;

		if (now_ns < until_ns && !at_end) {
			let_through(observer, now_ns, now_ns);
			return;
		}
		let_through(observer, until_ns, now_ns);
		oldest_ns = sequencer_oldest_ns(observer->sequencer);
		if (oldest_ns && oldest_ns <= asked_ns && now_ns < asked_ns + SEQUENCER_HOLD_NS && !at_end)
			return;
		if (!at_end && !store_has_all(observer, now_ns))
			return;
		grant_first(observer, now_ns);
	}
	let_through(observer, now_ns, now_ns);
}

int observer_turn(struct observer *observer)
{
	uint64_t now_ns;
	int n;

	now_ns = clock_monotonic_ns(); /* before the drain: all that is older than the watermark is then in */
	take_requests(observer, now_ns);
	n = drain_rings(observer);
	go_through(observer, now_ns, false);
	if (now_ns >= observer->next_tick_ns)
		feed_tick(observer, now_ns);
	if (now_ns >= observer->next_counters_ns)
		feed_counters(observer, now_ns);
	if (observer->recording)
		recording_flush(observer->recording);
	write_out(observer);
	return n < 0 ? n : 0;
}

size_t observer_open_calls(const struct observer *observer)
{
	return pipeline_open_calls(observer->pipeline) + sequencer_held_count(observer->sequencer);
}

/* In the table of the tree; one that ended before the probes were on stays there. */
static bool is_gone(uint32_t pid)
{
	return pid && kill((pid_t)pid, 0) && errno == ESRCH;
}

static void name_survivor(uint32_t pid, struct survivor *survivor)
{
	char path[64];
	FILE *file;

	survivor->pid = pid;
	snprintf(path, sizeof(path), "/proc/%u/comm", pid);
	file = fopen(path, "re");
	if (!file)
		return;
	if (fgets(survivor->comm, sizeof(survivor->comm), file))
		survivor->comm[strcspn(survivor->comm, "\n")] = '\0';
	fclose(file);
}

static void find_survivors(struct observer *observer, struct closing *closing)
{
	uint32_t tgids[CLOSING_SURVIVORS_MAX], kept = 0;
	int count = observer->options.capture.scope == CAPTURE_TREE
			    ? capture_tree(observer->capture, tgids, CLOSING_SURVIVORS_MAX) : 0;

	for (int i = 0; i < count && i < CLOSING_SURVIVORS_MAX; i++)
		if (!is_gone(tgids[i]))
			name_survivor(tgids[i], &closing->survivors[kept++]);
	closing->survivor_count = kept + (count > CLOSING_SURVIVORS_MAX ? (uint32_t)count - CLOSING_SURVIVORS_MAX : 0);
}

static uint64_t own_cpu_ms(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
	       (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
}

/* Bytes that could not be written all the same. */
static uint64_t wait_for_readers(struct observer *observer)
{
	struct output *outputs[] = {observer->ledger, observer->events, observer->junit};
	uint64_t missing = 0;

	for (size_t i = 0; i < sizeof(outputs) / sizeof(outputs[0]); i++) {
		if (!outputs[i])
			continue;
		output_flush(outputs[i]);
		missing += output_unwritten(outputs[i]) + output_lost(outputs[i]);
	}
	return missing;
}

/* Until both rings are empty; where what lives on fills them without end, what was in them at the start. */
static int drain_to_the_end(struct observer *observer)
{
	uint64_t now_ns = clock_monotonic_ns(), deadline_ns = now_ns + FINISH_NS;
	int n;

	do {
		n = drain_rings(observer);
		go_through(observer, now_ns, false);
		now_ns = clock_monotonic_ns();
	} while (n > 0 && now_ns < deadline_ns);
	return n < 0 ? n : 0;
}

int observer_finish(struct observer *observer, int command_status)
{
	struct input closing = {.kind = INPUT_CLOSING};
	struct input drain = {.kind = INPUT_DRAIN};
	int err, n;

	err = drain_to_the_end(observer);
	n = capture_flush_flows(observer->capture, observer->sequencer);
	if (n < 0) {
		observer->drain_failures++;
		err = n;
	}
	sequencer_drain(observer->sequencer);
	go_through(observer, clock_monotonic_ns(), true);
	drain.now_ns = clock_monotonic_ns();
	feed_tick(observer, drain.now_ns);
	n = feed_counters(observer, drain.now_ns);
	closing.closing.counters_unread = observer->counters_unread;
	err = n < 0 ? n : err;
	feed(observer, &drain);
	closing.closing.command_status = command_status;
	find_survivors(observer, &closing.closing);
	closing.closing.ring_size_bytes = capture_ring_size(observer->capture);
	closing.closing.ring_peak_bytes = capture_ring_peak(observer->capture);
	settle_store(observer, &closing.closing);
	write_out(observer);
	closing.closing.unwritten_bytes = wait_for_readers(observer);
	closing.now_ns = clock_monotonic_ns();
	closing.closing.wall_ms = (closing.now_ns - observer->facts.start_ns) / 1000000;
	closing.closing.cpu_ms = own_cpu_ms();
	feed(observer, &closing);
	write_out(observer);
	close_store(observer);
	wait_for_readers(observer);
	return err;
}

void observer_detach(struct observer *observer)
{
	capture_close(observer->capture);
	observer->capture = NULL;
}

static bool is_short(const struct output *output)
{
	return output && (output_unwritten(output) || output_lost(output));
}

bool observer_is_short(const struct observer *observer)
{
	return is_short(observer->ledger) || is_short(observer->events) || is_short(observer->junit);
}

int observer_exit_status(const struct observer *observer)
{
	int status = pipeline_exit_status(observer->pipeline);

	if (observer_is_short(observer) && status != GATE_EXIT_FINDING &&
	    !observer->options.pipeline.judge.allow_incomplete)
		return GATE_EXIT_INCOMPLETE;
	return status;
}

struct bytes observer_alerts(const struct observer *observer)
{
	return buffer_bytes(&observer->out.alerts);
}

void observer_take_alerts(struct observer *observer)
{
	buffer_clear(&observer->out.alerts);
}

struct bytes observer_calls(const struct observer *observer)
{
	return buffer_bytes(&observer->out.calls);
}

void observer_take_calls(struct observer *observer)
{
	buffer_clear(&observer->out.calls);
}

void observer_set_style(struct observer *observer, struct alert_style style)
{
	pipeline_set_style(observer->pipeline, style);
}

const char *observer_summary_line(const struct observer *observer)
{
	return pipeline_summary_line(observer->pipeline);
}

int observer_fd(const struct observer *observer)
{
	return capture_fd(observer->capture);
}

int observer_control_fd(const struct observer *observer)
{
	return observer->control ? control_fd(observer->control) : -1;
}

struct capture *observer_capture(struct observer *observer)
{
	return observer->capture;
}

/* ---- life ---- */

static int open_files(struct observer *observer, char *reason)
{
	const struct observer_options *options = &observer->options;
	const struct {
		const char *path;
		struct output **output;
		bool special;
	} files[] = {
		{options->ledger, &observer->ledger, false},
		{options->events, &observer->events, true},
		{options->junit, &observer->junit, false},
		{options->recording, &observer->recording_file, false},
	};
	int err = 0;

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]) && !err; i++) {
		if (!files[i].path)
			continue;
		err = output_open(files[i].path, files[i].special, &options->owner, files[i].output, reason);
		if (!err)
			output_never_wait(*files[i].output);
	}
	if (err || !options->recording)
		return err;
	/* What passes while the canary is awaited is part of it. */
	err = recording_writer_new(NULL, &observer->facts, &observer->recording);
	if (err)
		snprintf(reason, OUTPUT_REASON_MAX, "cannot begin a recording: %s", strerror(-err));
	return err;
}

static int begin_recording(struct observer *observer, char *reason)
{
	const char *path = observer->options.recording;
	int fd, err = output_make_private(observer->recording_file, reason);
	FILE *file;

	if (!err)
		err = output_truncate(observer->recording_file, reason);
	if (err)
		return err;
	fprintf(stderr, "nightclerk: %s will hold request and response bodies as they were sent, secrets included\n", path);
	fd = fcntl(output_fd(observer->recording_file), F_DUPFD_CLOEXEC, 0);
	file = fd < 0 ? NULL : fdopen(fd, "ab");
	err = file ? recording_writer_start(observer->recording, file) : -errno;
	if (err)
		snprintf(reason, OUTPUT_REASON_MAX, "cannot write %s: %s; choose another place for the recording", path,
			 strerror(-err));
	if (!file && fd >= 0)
		close(fd);
	return err;
}

static void mark_running(struct observer *observer)
{
	const char *path = observer->options.ledger;
	bool unclean = false;
	int err = output_mark_running(observer->ledger, observer->facts.run_id, &unclean);

	if (err)
		fprintf(stderr, "nightclerk: cannot mark %s as in use: %s, continuing\n", path, strerror(-err));
	if (unclean)
		fprintf(stderr, "nightclerk: the last run that wrote %s ended unclean: its last lines may be missing\n", path);
}

int observer_begin(struct observer *observer, char *reason)
{
	int err = 0;

	observer->begun = true;
	if (observer->recording_file && observer->recording)
		err = begin_recording(observer, reason);
	if (!err && observer->junit)
		err = output_truncate(observer->junit, reason);
	if (!err && observer->ledger && observer->options.append_mark)
		mark_running(observer);
	return err;
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
		let_through(observer, now_ns, now_ns);
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

/* ---- the store ---- */

/* Without one the run goes on: what it would have written is counted as lost. */
static void open_store(struct observer *observer)
{
	const struct observer_options *options = &observer->options;
	struct store_options how = {
		.path = options->db, .owner = options->owner, .create = true, .busy_ms = STORE_BUSY_MS};
	char reason[STORE_REASON_MAX];

	if (!options->db)
		return;
	if (store_open(&how, &observer->store, reason)) {
		fprintf(stderr, "nightclerk: %s; the run goes on, its rows are counted as lost\n", reason);
		return;
	}
	if (store_salt(options->db, &options->owner, observer->facts.salt, reason))
		fprintf(stderr, "nightclerk: %s; principals do not match those of other runs, continuing\n", reason);
}

static void feed_past(void *context, const struct past_attempt *stored)
{
	struct observer *observer = context;
	struct past_attempt past = *stored;
	struct input input = {.kind = INPUT_PAST, .now_ns = observer->facts.start_ns, .past = &past};

	/* A process of an earlier boot is gone; pid and start would say nothing of it. */
	if (past.complete_ns == 0 &&
	    (past.first_ns < observer->wall_offset_ns || process_is_gone(past.tgid, past.process_start_ns)))
		past.flags |= PAST_OWNER_GONE;
	feed(observer, &input);
}

/* What earlier runs left in the store goes through the same door as everything else, so a recording has it. */
static void load_past(struct observer *observer)
{
	int64_t since_ns = (int64_t)observer->facts.start_ns + observer->wall_offset_ns - PAST_NS;

	if (observer->store && store_past_attempts(observer->store, since_ns, PAST_MAX, feed_past, observer))
		fprintf(stderr, "nightclerk: %s; attempts of earlier runs do not count, continuing\n",
			store_reason(observer->store));
}

static int start_store_writer(struct observer *observer, char *reason)
{
	struct store_writer_options writer = {
		.store = observer->store,
		.ttl_ns = observer->options.ttl_ns,
	};
	int err;

	if (!observer->options.db)
		return 0;
	store_run_of(&observer->facts, &observer->options.pipeline.judge, observer->options.lease_ns, &writer.run);
	observer->store = NULL;
	err = store_writer_new(&writer, &observer->store_writer);
	if (err)
		snprintf(reason, OUTPUT_REASON_MAX, "cannot start the thread that writes the store: %s", strerror(-err));
	return err;
}

static void open_control(struct observer *observer)
{
	int err = control_open(admits, observer, &observer->control);

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
	load_past(observer);
	if (observer->options.canary) {
		err = prove_canary(observer, reason);
		if (err)
			return err;
	}
	err = start_store_writer(observer, reason); /* its thread comes after the canary's fork */
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
	sweep();
	observer->options = *options;
	observer->options.pipeline.junit = options->junit != NULL;
	observer->options.pipeline.bookings = options->db != NULL;
	snprintf(reason, OUTPUT_REASON_MAX, "no random numbers to be had");
	err = fill_facts(observer);
	if (!err)
		open_store(observer);
	if (!err)
		err = capture_open(&options->capture, &observer->capture, reason);
	if (!err) {
		snprintf(observer->facts.door, sizeof(observer->facts.door), "%s",
			 capture_door_name(capture_door(observer->capture)));
		err = open_files(observer, reason);
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

static void close_files(struct observer *observer)
{
	void (*close_one)(struct output *output) = observer->begun ? close_output : output_abandon;

	close_one(observer->ledger);
	close_one(observer->events);
	close_one(observer->junit);
	close_one(observer->recording_file);
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
	close_files(observer);
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
	free(observer);
}
