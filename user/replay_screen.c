/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A recording only runs forwards: a step back plays it again from its start to
 * one step before, which is exact, and quick enough (a million events a second).
 */
#include "replay_screen.h"
#include "clock.h"
#include "gate.h"
#include "playback.h"
#include "viewer.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECOND_NS (1000 * 1000 * 1000ULL)
#define IDLE_MS 20
#define INPUTS_A_TURN 20000 /* keys are looked at between them */

struct player {
	const char *path, *policy_path;
	struct playback playback;
	struct pipeline *pipeline;
	struct pipeline_output out;
	struct viewer viewer;
	struct screen_model *model;
	uint64_t start_ns, end_ns; /* of its first and its last input */
	/*
	 * What screen_model_steps() said after each input that changed it: the steps that one can
	 * take. One input may bring several, at the end of a connection for instance.
	 */
	uint64_t *step;
	size_t step_count, step_capacity;
	bool at_end;
	int status; /* of the whole recording, after the first time through */
	uint64_t playing_since_ns, playing_from_ns; /* 0 = stopped */
	int signal_fd;
	bool leave;
};

static void forget_output(struct player *player)
{
	buffer_clear(&player->out.ledger);
	buffer_clear(&player->out.events);
	buffer_clear(&player->out.alerts);
}

static void close_recording(struct player *player)
{
	pipeline_free(player->pipeline);
	player->pipeline = NULL;
	playback_close(&player->playback);
	forget_output(player);
}

/* From its start. 0, or the exit status; what is wrong is on standard error. */
static int open_recording(struct player *player)
{
	struct pipeline_options options;
	int status;

	close_recording(player);
	screen_model_forget(player->model);
	status = playback_open(&player->playback, player->path, player->policy_path);
	if (status)
		return status;
	options = (struct pipeline_options){
		.judge = player->playback.judge, .policy = player->playback.policy, .screen = player->model};
	player->pipeline = pipeline_new(recording_facts(player->playback.reader), &options, &player->out);
	player->playback.now_ns = player->start_ns;
	player->at_end = false;
	if (!player->pipeline)
		fprintf(stderr, "nightclerk: out of memory\n");
	return player->pipeline ? 0 : 1;
}

static void feed(struct player *player)
{
	if (!player->at_end && !playback_feed(&player->playback, player->pipeline)) {
		player->at_end = true;
		player->status = playback_finish(&player->playback, player->pipeline);
	}
	forget_output(player);
}

/* ---- moving in time ---- */

static void step_to(struct player *player, uint64_t step)
{
	while (!player->at_end && screen_model_steps(player->model) < step)
		feed(player);
}

/* How many steps were taken to get here. */
static size_t steps_taken(const struct player *player)
{
	uint64_t now = screen_model_steps(player->model);
	size_t low = 0, high = player->step_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (player->step[middle] <= now)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void time_to(struct player *player, uint64_t when_ns)
{
	while (!player->at_end && player->playback.now_ns < when_ns)
		feed(player);
}

static void rewind_recording(struct player *player)
{
	if (open_recording(player))
		player->leave = true; /* it was readable a moment ago: why not is on standard error */
}

static void step_back(struct player *player)
{
	size_t taken = steps_taken(player);

	rewind_recording(player);
	if (!player->leave && taken > 1)
		step_to(player, player->step[taken - 2]);
}

static void second_back(struct player *player)
{
	uint64_t now_ns = player->playback.now_ns;

	rewind_recording(player);
	if (!player->leave && now_ns > player->start_ns + SECOND_NS)
		time_to(player, now_ns - SECOND_NS);
}

static void play_or_stop(struct player *player, uint64_t now_ns)
{
	if (player->playing_since_ns) {
		player->playing_since_ns = 0;
		return;
	}
	if (player->at_end)
		rewind_recording(player);
	player->playing_since_ns = now_ns;
	player->playing_from_ns = player->playback.now_ns;
}

static void play(struct player *player, uint64_t now_ns)
{
	uint64_t until_ns = player->playing_from_ns + (now_ns - player->playing_since_ns);

	for (int i = 0; i < INPUTS_A_TURN && !player->at_end && player->playback.now_ns < until_ns; i++)
		feed(player);
	if (player->at_end)
		player->playing_since_ns = 0;
}

static void act(struct player *player, enum screen_action action, uint64_t now_ns)
{
	if (action != SCREEN_PLAY && action != SCREEN_NOTHING)
		player->playing_since_ns = 0;
	switch (action) {
	case SCREEN_STEP:
		step_to(player, screen_model_steps(player->model) + 1);
		break;
	case SCREEN_STEP_BACK:
		step_back(player);
		break;
	case SCREEN_SECOND:
		time_to(player, player->playback.now_ns + SECOND_NS);
		break;
	case SCREEN_SECOND_BACK:
		second_back(player);
		break;
	case SCREEN_PLAY:
		play_or_stop(player, now_ns);
		break;
	case SCREEN_QUIT:
		player->leave = true;
		break;
	default:
		break;
	}
}

/* ---- the loop ---- */

static double seconds(uint64_t from_ns, uint64_t to_ns)
{
	return to_ns > from_ns ? (double)(to_ns - from_ns) / 1e9 : 0.0;
}

static void say_state(struct player *player)
{
	char text[96];

	snprintf(text, sizeof(text), "%s %zu/%zu, %.1f/%.1f s", player->playing_since_ns ? "PLAYING" : "STEP",
		 steps_taken(player), player->step_count,
		 seconds(player->start_ns, player->playback.now_ns), seconds(player->start_ns, player->end_ns));
	screen_model_state(player->model, text);
}

static int open_signals(void)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH};
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaddset(&set, signals[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void take_signals(struct player *player)
{
	struct signalfd_siginfo info;

	while (read(player->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGWINCH)
			viewer_resized(&player->viewer);
		else
			player->leave = true;
	}
}

static void turn(struct player *player)
{
	struct pollfd fds[] = {{.fd = player->signal_fd, .events = POLLIN},
			       {.fd = screen_fd(player->viewer.screen), .events = POLLIN}};
	uint64_t now_ns;

	poll(fds, 2, IDLE_MS);
	now_ns = clock_monotonic_ns();
	take_signals(player);
	if (screen_gone(player->viewer.screen))
		player->leave = true;
	if (player->playing_since_ns)
		play(player, now_ns);
	say_state(player);
	act(player, viewer_turn(&player->viewer, now_ns), now_ns);
}

/* 0 or -ENOMEM. */
static int note_step(struct player *player)
{
	uint64_t now = screen_model_steps(player->model);

	if (now == (player->step_count ? player->step[player->step_count - 1] : 0))
		return 0;
	if (player->step_count == player->step_capacity) {
		size_t capacity = player->step_capacity ? player->step_capacity * 2 : 256;
		uint64_t *more = reallocarray(player->step, capacity, sizeof(*more));

		if (!more)
			return -ENOMEM;
		player->step = more;
		player->step_capacity = capacity;
	}
	player->step[player->step_count++] = now;
	return 0;
}

/* All of it once: how long it is, which steps it has, and what the gate says. */
static int play_through(struct player *player)
{
	int status = open_recording(player), verdict;

	if (status)
		return status;
	feed(player);
	player->start_ns = player->playback.now_ns;
	while (!player->at_end) {
		feed(player);
		if (note_step(player)) {
			fprintf(stderr, "nightclerk: out of memory\n");
			return 1;
		}
	}
	player->end_ns = player->playback.now_ns;
	verdict = pipeline_exit_status(player->pipeline);
	if (!player->status && (verdict == GATE_EXIT_FINDING || verdict == GATE_EXIT_INCOMPLETE))
		player->status = verdict;
	return 0;
}

static struct screen_model *new_model(const char *path)
{
	char title[96];
	const char *name = strrchr(path, '/');
	struct screen_options options = {.title = title, .fail_on = SEVERITY_MEDIUM};

	snprintf(title, sizeof(title), "replay %s", name ? name + 1 : path);
	return screen_model_new(&options);
}

static int run(struct player *player, struct screen *screen)
{
	int err, status = play_through(player), verdict = player->status;

	if (status) {
		screen_close(screen);
		return status;
	}
	screen_model_can_step(player->model);
	player->signal_fd = open_signals();
	err = viewer_open(&player->viewer, screen, player->model);
	if (err)
		fprintf(stderr, "nightclerk: the terminal cannot be used: %s; leave --screen out\n", strerror(-err));
	while (!err && !player->leave)
		turn(player);
	screen_close(player->viewer.screen);
	player->viewer.screen = NULL;
	close(player->signal_fd);
	return err ? 1 : verdict;
}

/* A pipe cannot: what is wrong with a path that is not there is said where it is opened. */
static bool can_be_read_again(const char *path)
{
	struct stat stat_of;

	return stat(path, &stat_of) || S_ISREG(stat_of.st_mode);
}

int replay_screen(const char *path, const char *policy_path)
{
	struct player player = {.path = path, .policy_path = policy_path};
	struct screen *screen;
	const char *reason;
	int status = 1;

	if (!can_be_read_again(path)) {
		fprintf(stderr, "nightclerk: the full screen goes back in time, and %s can be read once: the plain form instead; "
			"a copy in a file can be shown\n", path);
		return -1;
	}
	if (screen_new(&screen, &reason)) {
		fprintf(stderr, "nightclerk: %s: the plain form instead of the full screen\n", reason);
		return -1;
	}
	player.model = new_model(path);
	if (player.model)
		status = run(&player, screen);
	else
		fprintf(stderr, "nightclerk: out of memory\n");
	close_recording(&player);
	player.viewer.model = player.model;
	viewer_close(&player.viewer);
	buffer_done(&player.out.ledger);
	buffer_done(&player.out.events);
	buffer_done(&player.out.alerts);
	free(player.step);
	return status;
}
