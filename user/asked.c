/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files, the key of what they hold, and a warning where an answer is one of
 * many.
 */
#include "asked.h"
#include "commands.h"
#include "model_key.h"
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#define READ_BYTES (64 * 1024)

int asked_file(const char *path, struct buffer *out)
{
	bool standard = strcmp(path, "-") == 0;
	int fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC), err = fd < 0 ? -errno : 0;
	ssize_t n = 1;

	while (!err && n) {
		err = buffer_reserve(out, READ_BYTES);
		n = err ? 0 : read(fd, out->data + out->size, READ_BYTES);
		if (n < 0 && errno != EINTR)
			err = -errno;
		else if (n > 0)
			out->size += (size_t)n;
		if (!err && out->size > STORE_RESULT_MAX)
			err = -EFBIG;
	}
	if (fd >= 0 && !standard)
		close(fd);
	if (err)
		fprintf(stderr, "nightclerk: cannot read %s: %s\n", standard ? "standard input" : path, strerror(-err));
	return err;
}

int asked_print(struct bytes bytes)
{
	while (bytes.size) {
		ssize_t n = write(STDOUT_FILENO, bytes.data, bytes.size);

		if (n < 0 && errno == EAGAIN)
			poll(&(struct pollfd){.fd = STDOUT_FILENO, .events = POLLOUT}, 1, -1);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n < 0)
			return -errno;
		bytes_take(&bytes, (size_t)n);
	}
	return 0;
}

/* ---- the key ---- */

static void warn_of_temperature(const struct asking *asking, enum call_temperature temperature)
{
	if (temperature == TEMPERATURE_ZERO || !(asking->verb & (COMMAND_LINE_RESERVE | COMMAND_LINE_ONCE)))
		return;
	fprintf(stderr,
		"nightclerk %s: the request's temperature is %s: another try may give another answer, and the kept one "
		"stands for all of them\n",
		command_line_verb_name(asking->verb), temperature == TEMPERATURE_ABSENT ? "not set" : "above 0");
}

static int key_of_request(struct asking *asking, struct digest *ret_key)
{
	const struct command_line *line = &asking->line;
	struct model_request request = {.path = bytes_of_string(line->asked.path),
					.extra = bytes_of_string(line->asked.extra),
					.schema_version = line->judge.schema_version,
					.policy = line->policy};
	struct model_request_key key;
	struct buffer body = {0};
	int err = asked_file(line->asked.request, &body);

	if (err) {
		buffer_done(&body);
		return 1;
	}
	request.body = buffer_bytes(&body);
	err = model_key_of_request(&request, &key);
	buffer_done(&body);
	if (err) {
		fprintf(stderr, "nightclerk %s: %s\n", command_line_verb_name(asking->verb),
			err == -EINVAL ? "path and body are no call of a model that is known; a rule of --policy may say that they are"
				       : "out of memory");
		return 1;
	}
	memcpy(asking->model, key.model, key.model_size);
	*ret_key = key.key;
	warn_of_temperature(asking, key.temperature);
	return 0;
}

static int key_of_prompt(struct asking *asking, struct digest *ret_key)
{
	const struct command_line *line = &asking->line;
	struct model_key_parts parts = {.schema_version = bytes_of_string(line->judge.schema_version),
					.model = bytes_of_string(line->asked.model),
					.extra = bytes_of_string(line->asked.extra)};
	struct buffer prompt = {0};
	int err = asked_file(line->asked.prompt, &prompt);

	if (!err && (digest_of(buffer_bytes(&prompt), &parts.prompt_hash) || model_key(&parts, ret_key))) {
		fprintf(stderr, "nightclerk: out of memory\n");
		err = -ENOMEM;
	}
	snprintf(asking->model, sizeof(asking->model), "%s", line->asked.model);
	buffer_done(&prompt);
	return err ? 1 : 0;
}

/* A key that was given stands; what is asked then only says which model, and whether to warn. */
static int make_key(struct asking *asking)
{
	const struct command_line *line = &asking->line;
	struct digest key;
	int status = 0;

	if (line->asked.request)
		status = key_of_request(asking, &key);
	else if (line->asked.prompt)
		status = key_of_prompt(asking, &key);
	if (status)
		return status;
	if (line->key)
		snprintf(asking->key, sizeof(asking->key), "%s", line->key);
	else if (line->asked.request || line->asked.prompt)
		hex_of(key.byte, DIGEST_BYTES, asking->key);
	return 0;
}

/* ---- the store ---- */

int asking_start(enum command_line_verb verb, int argc, char **argv, struct asking *ret_asking)
{
	memset(ret_asking, 0, sizeof(*ret_asking));
	ret_asking->verb = verb;
	switch (command_line_parse(verb, argc, argv, &ret_asking->line)) {
	case COMMAND_LINE_HELP:
		return 1;
	case COMMAND_LINE_BAD:
		return EXIT_USAGE + 1;
	case COMMAND_LINE_OK:
		break;
	}
	process_world(&ret_asking->world);
	ret_asking->world.now_ns = ret_asking->line.now_ns;
	return make_key(ret_asking) ? 1 + 1 : 0;
}

int asking_open(struct asking *asking, bool create, int failed)
{
	struct store_options how = {
		.path = asking->line.db, .owner = output_owner_of_environment(), .create = create, .durable = true};
	char reason[STORE_REASON_MAX];

	if (store_open(&how, &asking->store, reason) == 0)
		return 0;
	fprintf(stderr, "nightclerk %s: %s\n", command_line_verb_name(asking->verb), reason);
	return failed;
}

struct store_claim asking_claim(const struct asking *asking, const char *owner)
{
	struct store_claim claim = {
		.key = asking->key,
		.owner = owner,
		.model = asking->model[0] ? asking->model : NULL,
		.schema_version = asking->line.judge.schema_version,
		.world = &asking->world,
		.lease_ns = asking->line.lease_ns,
		.ttl_ns = asking->line.ttl_ns,
	};

	/* A job lives on between `reserve` and `commit`; of `once` there may be many in one job. */
	claim.process_count = process_and_ancestors((uint32_t)(asking->verb == COMMAND_LINE_ONCE ? getpid() : getppid()),
						    claim.process, STORE_ANCESTORS_MAX);
	return claim;
}

int asking_failed(const struct asking *asking, int failed)
{
	fprintf(stderr, "nightclerk %s: %s\n", command_line_verb_name(asking->verb), store_reason(asking->store));
	return failed;
}

void asking_done(struct asking *asking)
{
	store_close(asking->store);
	buffer_done(&asking->result);
	command_line_done(&asking->line);
}
