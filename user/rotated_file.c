/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A rotation comes after the lines that made the file too large, so a file is
 * larger than its limit by one batch at most, and each line is written once.
 */
#include "rotated_file.h"
#include "beneath.h"
#include "output.h"

#include <errno.h>
#include <stdlib.h>

struct rotated_file {
	struct output *output;
	struct rotation_limits limits;
	struct rotated_file_source source;
	struct rotation_pause open_pause;
	struct rotation_pause rotation_pause;
	bool wants_open;
	uint64_t opened_ns;
	uint64_t age_then_ns; /* of the file when it was opened */
	uint64_t rotations;
};

struct rotated_file *rotated_file_new(const char *name, const struct rotation_limits *limits,
				      const struct rotated_file_source *source)
{
	struct rotated_file *file = calloc(1, sizeof(*file));

	if (!file)
		return NULL;
	file->limits = *limits;
	file->source = *source;
	file->wants_open = true;
	if (output_adopt(-1, name, &file->output) == 0)
		return file;
	free(file);
	return NULL;
}

/* The wall clock is looked at only here: a clock that jumps later makes no file older. */
static void take(struct rotated_file *file, int fd, uint64_t now_ns, int64_t wall_ns)
{
	int64_t born_ns = wall_ns;

	if (beneath_born(fd, &born_ns) || born_ns > wall_ns)
		born_ns = wall_ns;
	file->age_then_ns = (uint64_t)(wall_ns - born_ns);
	file->opened_ns = now_ns;
	file->wants_open = false;
	file->open_pause = file->rotation_pause = (struct rotation_pause){0};
	output_switch(file->output, fd);
}

static void open_if_wanted(struct rotated_file *file, uint64_t now_ns, int64_t wall_ns)
{
	int fd;

	if (output_is_removed(file->output))
		file->wants_open = true;
	if (!file->wants_open || !rotation_may_ask(&file->open_pause, now_ns))
		return;
	fd = file->source.ask(file->source.context, false);
	if (fd < 0)
		rotation_refused(&file->open_pause, now_ns);
	else
		take(file, fd, now_ns, wall_ns);
}

static void rotate_if_due(struct rotated_file *file, uint64_t now_ns, int64_t wall_ns)
{
	uint64_t age_ns = file->age_then_ns + (now_ns - file->opened_ns);
	int fd;

	if (!rotation_is_due(&file->limits, output_size(file->output), age_ns) ||
	    !rotation_may_ask(&file->rotation_pause, now_ns))
		return;
	fd = file->source.ask(file->source.context, true);
	if (fd < 0) {
		rotation_refused(&file->rotation_pause, now_ns);
		return;
	}
	file->rotations++;
	take(file, fd, now_ns, wall_ns);
}

int rotated_file_write(struct rotated_file *file, struct bytes lines, uint64_t now_ns, int64_t wall_ns,
		       const char **ret_notice)
{
	int err;

	open_if_wanted(file, now_ns, wall_ns);
	err = output_write(file->output, lines, ret_notice);
	rotate_if_due(file, now_ns, wall_ns);
	if (err == -ENOMEM)
		return err;
	return output_unwritten(file->output) ? err : 0; /* a new file may have taken what the old one did not */
}

void rotated_file_reopen(struct rotated_file *file)
{
	file->wants_open = true;
	file->open_pause = (struct rotation_pause){0};
}

size_t rotated_file_unwritten(const struct rotated_file *file)
{
	return output_unwritten(file->output);
}

uint64_t rotated_file_lost(const struct rotated_file *file)
{
	return output_lost(file->output);
}

uint64_t rotated_file_rotations(const struct rotated_file *file)
{
	return file->rotations;
}

int rotated_file_close(struct rotated_file *file)
{
	int err = file ? output_close(file->output) : 0;

	free(file);
	return err;
}
