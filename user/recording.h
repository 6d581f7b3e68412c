/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The recording: everything that the pipeline takes in, as a file.
 *
 * Layout: 16 magic bytes of which the last two are the format version, then
 * blocks. A block is five u32, little endian: magic, kind, payload bytes, crc32
 * of the payload, crc32 of these four and the block's number; then the payload.
 * The first block is the header (JSON text); every further block holds whole
 * inputs (see input.h); the last one holds the closing input alone. A file that
 * was cut is readable to its last whole block. Bodies are in it as they were
 * sent: it is opened 0600 by whoever asks for it.
 *
 * The reader trusts no length: blocks are at most RECORDING_BLOCK_MAX bytes.
 */
#ifndef NIGHTCLERK_RECORDING_H
#define NIGHTCLERK_RECORDING_H

#include "input.h"
#include <stdio.h>

#define RECORDING_VERSION 1
#define RECORDING_BLOCK_MAX (1024 * 1024)

/* Facts of the run that the pipeline needs and that no input carries. */
struct run_facts {
	uint8_t boot_id[16];
	uint8_t salt[32];	/* for hashes of secrets; per run */
	char run_id[17];	/* 16 hex digits */
	char tenant[65];	/* `audit`: whose run it is; "" = there are no tenants. Not in recordings */
	char version[32];	/* of nightclerk */
	char door[16];		/* "tracepoint", "kprobe" */
	char kernel[65];	/* uname -r */
	char canary[16];	/* "seen", "none" */
	char scope[64];		/* "tree", "pid 4711", ... */
	char command[256];	/* argv[0]; "" where no command is run */
	int32_t argument_count; /* argv[1..]; their text is never kept */
	int64_t wall_offset_ns; /* CLOCK_REALTIME - CLOCK_MONOTONIC at the start */
	uint64_t start_ns;	/* CLOCK_MONOTONIC at the start */
	char options[1024];	/* JSON object: the judging options of the run (options.h) */
	struct bytes policy;	/* text of the policy file; empty = none. Borrowed: from the reader, when it comes from one */
};

/* ---- writing ---- */

struct recording_writer;

/*
 * Takes ownership of file (opened for binary writing) and writes the header.
 * file NULL: all is kept in memory until recording_writer_start(). 0 or -errno;
 * *ret_writer untouched on failure (file is then closed).
 */
int recording_writer_new(FILE *file, const struct run_facts *facts,
			 struct recording_writer **ret_writer);
/* Takes ownership of file and writes what was kept. 0 or -errno. */
int recording_writer_start(struct recording_writer *writer, FILE *file);
/*
 * Appends one input. Errors stick: the first -errno comes back from every later
 * call. -EINVAL: time runs backwards, something follows the closing input, or a
 * wire event is not what it says; -EMSGSIZE: the input is larger than a block.
 */
int recording_write(struct recording_writer *writer, const struct input *input);
/* Writes what is there as a block and flushes the file: called at each turn of the observer. */
int recording_flush(struct recording_writer *writer);
/* Flushes, closes and frees; 0 or the first error. Accepts NULL. */
int recording_writer_free(struct recording_writer *writer);

/* ---- reading ---- */

enum recording_result {
	RECORDING_INPUT,	/* *ret_input is lent until the next call */
	RECORDING_END,		/* the closing block was read */
	RECORDING_CUT,		/* the file ends before its closing block; all before is good */
	RECORDING_DAMAGED,	/* a checksum, length or field is wrong: recording_error() */
	RECORDING_IO_ERROR,
};

struct recording_reader;

/*
 * Takes ownership of file and reads the header. 0, -ENOMEM, -EIO,
 * -EPROTONOSUPPORT (another version), or -EBADMSG (not a recording, or its
 * header is cut or damaged); *ret_reader is set in every case but -ENOMEM, so
 * that recording_error() can say what is wrong. Reads on from where file stands
 * and never seeks.
 */
int recording_reader_new(FILE *file, struct recording_reader **ret_reader);
/* So many bytes tell whether a file is a recording. */
#define RECORDING_MAGIC_BYTES 14
bool recording_is_begun(struct bytes begin);
/* The same for a file of which the first bytes, RECORDING_MAGIC_BYTES at most, were read already: a pipe has them once. */
int recording_reader_new_begun(FILE *file, struct bytes begin, struct recording_reader **ret_reader);
const struct run_facts *recording_facts(const struct recording_reader *reader);
/* After anything but RECORDING_INPUT, every later call gives the same result. */
enum recording_result recording_next(struct recording_reader *reader, struct input *ret_input);
/* One line in words: what is wrong, at which byte. Empty when nothing is. */
const char *recording_error(const struct recording_reader *reader);
void recording_reader_free(struct recording_reader *reader); /* accepts NULL */

#endif
