/* SPDX-License-Identifier: BSD-2-Clause */
/* A short table, searched from front to back: streams that cannot be read are few, or of few processes. */
#include "blind.h"
#include "say.h"
#include "utf8.h"

static struct blind_process *row_of(struct blind_processes *processes, const struct process *process)
{
	struct blind_process *row = processes->row;

	if (!process->tgid)
		return &processes->row[BLIND_PROCESSES_MAX];
	for (; row < processes->row + processes->count; row++)
		if (row->process.tgid == process->tgid && row->process.start_ns == process->start_ns)
			return row;
	if (processes->count == BLIND_PROCESSES_MAX)
		return row; /* the last one */
	processes->count++;
	row->process = *process;
	return row;
}

void blind_add(struct blind_processes *processes, const struct process *process, enum blind_kind kind,
	       uint64_t bytes_out, uint64_t bytes_in)
{
	struct blind_process *row = row_of(processes, process);

	row->streams[kind]++;
	row->bytes_out += bytes_out;
	row->bytes_in += bytes_in;
}

uint64_t blind_streams_of(const struct blind_process *row, unsigned int kinds)
{
	uint64_t streams = 0;

	for (int kind = 0; kind < BLIND_COUNT; kind++)
		if (kinds & 1u << kind)
			streams += row->streams[kind];
	return streams;
}

const struct blind_process *blind_row(const struct blind_processes *processes, size_t n)
{
	const struct blind_process *last = &processes->row[BLIND_PROCESSES_MAX];

	if (n < processes->count)
		return &processes->row[n];
	return n == processes->count && blind_streams_of(last, ~0u) ? last : NULL;
}

static int say_row(const struct blind_process *row, unsigned int kinds, struct buffer *out)
{
	const char *separator = ": ";
	int err;

	if (row->process.tgid) {
		err = text_harmless(bytes_of_string(row->process.comm), 64, out);
		if (!err)
			err = say(out, " (%u)", row->process.tgid);
	} else {
		err = say(out, "others");
	}
	for (int kind = 0; kind < BLIND_COUNT && !err; kind++) {
		if (!row->streams[kind] || !(kinds & 1u << kind))
			continue;
		err = say(out, "%s%llu %s", separator, (unsigned long long)row->streams[kind], blind_kind_name(kind));
		separator = ", ";
	}
	return err;
}

int blind_say(const struct blind_processes *processes, unsigned int kinds, size_t max_processes, struct buffer *out)
{
	const struct blind_process *row;
	size_t said = 0;
	int err = 0;

	for (size_t n = 0; !err && (row = blind_row(processes, n)); n++) {
		if (!blind_streams_of(row, kinds))
			continue;
		if (said == max_processes)
			return say(out, "; ...");
		if (said++)
			err = say(out, "; ");
		if (!err)
			err = say_row(row, kinds, out);
	}
	return err;
}
