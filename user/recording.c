/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Blocks with checksums, written and read one after the other. The checksum of
 * a block's head covers its number, so a block that is missing or out of place
 * shows as damage, and a length is known to be good before it is believed.
 */
#include "recording_parts.h"

#include <errno.h>
#include <zlib.h>

/* The version follows, in two bytes. */
static const uint8_t file_magic[RECORDING_MAGIC_BYTES] = "nightclerk rec";

#define FILE_HEAD_BYTES (sizeof(file_magic) + sizeof(uint16_t))
#define BLOCK_MAGIC 0x6b6c4243u /* "CBlk" */
#define BLOCK_FULL_BYTES (256 * 1024)

enum block_kind {
	BLOCK_HEADER = 1,
	BLOCK_INPUTS,
	BLOCK_CLOSING,
};

struct block_head {
	uint32_t magic;
	uint32_t kind;
	uint32_t payload_bytes;
	uint32_t payload_crc;
	uint32_t head_crc;
};

static_assert(sizeof(struct block_head) == 20, "no padding in the file");

static uint32_t crc_of(struct bytes bytes)
{
	return (uint32_t)crc32_z(0, bytes.data, bytes.size);
}

static uint32_t head_crc(const struct block_head *head, uint64_t number)
{
	uLong crc = crc32_z(0, (const uint8_t *)&number, sizeof(number));

	return (uint32_t)crc32_z(crc, (const uint8_t *)head,
				 offsetof(struct block_head, head_crc));
}

/* ---- writing ---- */

struct recording_writer {
	FILE *file;	     /* NULL = not given yet */
	struct buffer kept;  /* what it will begin with */
	struct buffer block; /* inputs that are not written yet */
	uint64_t block_number;
	uint64_t now_ns; /* of the last input */
	bool closed;	 /* the closing input was written */
	int error;
};

static int write_bytes(struct recording_writer *writer, const void *data, size_t size)
{
	if (!writer->file)
		return buffer_append(&writer->kept, (struct bytes){data, size});
	errno = 0;
	if (fwrite(data, 1, size, writer->file) == size)
		return 0;
	return errno ? -errno : -EIO;
}

/* Writes writer->block, if there is anything in it, and empties it. */
static int write_block(struct recording_writer *writer, enum block_kind kind)
{
	struct bytes payload = buffer_bytes(&writer->block);
	struct block_head head = {
		.magic = BLOCK_MAGIC,
		.kind = kind,
		.payload_bytes = (uint32_t)payload.size,
	};
	int err;

	if (payload.size == 0)
		return 0;
	head.payload_crc = crc_of(payload);
	head.head_crc = head_crc(&head, writer->block_number++);
	err = write_bytes(writer, &head, sizeof(head));
	if (!err)
		err = write_bytes(writer, payload.data, payload.size);
	buffer_clear(&writer->block);
	return err;
}

static int write_file_head(struct recording_writer *writer, const struct run_facts *facts)
{
	const uint16_t version = RECORDING_VERSION;
	int err = write_bytes(writer, file_magic, sizeof(file_magic));

	if (!err)
		err = write_bytes(writer, &version, sizeof(version));
	if (!err)
		err = recording_put_facts(&writer->block, facts);
	if (!err)
		err = write_block(writer, BLOCK_HEADER);
	return err;
}

int recording_writer_new(FILE *file, const struct run_facts *facts,
			 struct recording_writer **ret_writer)
{
	struct recording_writer *writer = calloc(1, sizeof(*writer));
	int err;

	if (!writer) {
		if (file)
			fclose(file);
		return -ENOMEM;
	}
	writer->file = file;
	writer->error = write_file_head(writer, facts);
	if (writer->error || recording_flush(writer)) {
		err = writer->error;
		recording_writer_free(writer);
		return err;
	}
	*ret_writer = writer;
	return 0;
}

int recording_writer_start(struct recording_writer *writer, FILE *file)
{
	writer->file = file;
	if (!writer->error)
		writer->error = write_bytes(writer, writer->kept.data, writer->kept.size);
	buffer_done(&writer->kept);
	return recording_flush(writer);
}

static int append_input(struct recording_writer *writer, const struct input *input)
{
	bool closing = input->kind == INPUT_CLOSING;
	size_t size = recording_input_bytes(input);
	int err = 0;

	if (size == 0 || writer->closed || input->now_ns < writer->now_ns)
		return -EINVAL;
	if (size > RECORDING_BLOCK_MAX)
		return -EMSGSIZE;
	if (closing || writer->block.size + size > BLOCK_FULL_BYTES)
		err = write_block(writer, BLOCK_INPUTS);
	if (!err)
		err = recording_put_input(&writer->block, input);
	if (err)
		return err;
	writer->now_ns = input->now_ns;
	if (closing) {
		writer->closed = true;
		return write_block(writer, BLOCK_CLOSING);
	}
	return 0;
}

int recording_write(struct recording_writer *writer, const struct input *input)
{
	if (!writer->error)
		writer->error = append_input(writer, input);
	return writer->error;
}

int recording_flush(struct recording_writer *writer)
{
	if (!writer->error)
		writer->error = write_block(writer, BLOCK_INPUTS);
	errno = 0;
	if (!writer->error && writer->file && fflush(writer->file))
		writer->error = errno ? -errno : -EIO;
	return writer->error;
}

int recording_writer_free(struct recording_writer *writer)
{
	int err;

	if (!writer)
		return 0;
	err = recording_flush(writer);
	errno = 0;
	if (writer->file && fclose(writer->file) && !err)
		err = errno ? -errno : -EIO;
	buffer_done(&writer->kept);
	buffer_done(&writer->block);
	free(writer);
	return err;
}

/* ---- reading ---- */

struct recording_reader {
	FILE *file;
	struct run_facts facts;
	struct buffer policy;	 /* what facts.policy points to */
	struct buffer payload;	 /* of the present block */
	struct bytes rest;	 /* inputs of it that were not handed out yet */
	struct input_room room; /* of the last input */
	uint64_t block_number;	 /* of the next block */
	uint64_t position;	 /* bytes read from the file */
	uint64_t now_ns;
	bool in_closing;
	enum recording_result result; /* RECORDING_INPUT while there may be more */
	char error[160];
};

static enum recording_result stop(struct recording_reader *reader, enum recording_result result,
				  uint64_t position, const char *what)
{
	reader->result = result;
	snprintf(reader->error, sizeof(reader->error), "byte %llu: %s",
		 (unsigned long long)position, what);
	return result;
}

/* RECORDING_INPUT when all size bytes came. */
static enum recording_result read_bytes(struct recording_reader *reader, void *to, size_t size)
{
	size_t got = fread(to, 1, size, reader->file);

	reader->position += got;
	if (got == size)
		return RECORDING_INPUT;
	if (ferror(reader->file))
		return stop(reader, RECORDING_IO_ERROR, reader->position, "the file cannot be read");
	return stop(reader, RECORDING_CUT, reader->position,
		    "the file ends here, before its closing block");
}

static enum recording_result read_block_head(struct recording_reader *reader,
					     struct block_head *ret_head)
{
	uint64_t start = reader->position;
	enum recording_result result = read_bytes(reader, ret_head, sizeof(*ret_head));

	if (result != RECORDING_INPUT)
		return result;
	if (ret_head->magic != BLOCK_MAGIC ||
	    ret_head->head_crc != head_crc(ret_head, reader->block_number))
		return stop(reader, RECORDING_DAMAGED, start,
			    "the head of a block is damaged, or the block is out of place");
	if (ret_head->payload_bytes == 0 || ret_head->payload_bytes > RECORDING_BLOCK_MAX)
		return stop(reader, RECORDING_DAMAGED, start,
			    "a block has an impossible length");
	/* The header comes first and only there. */
	if (ret_head->kind < BLOCK_HEADER || ret_head->kind > BLOCK_CLOSING ||
	    (ret_head->kind == BLOCK_HEADER) != (reader->block_number == 0))
		return stop(reader, RECORDING_DAMAGED, start,
			    "a block has a kind that has no place here");
	return RECORDING_INPUT;
}

/* The next block is in reader->payload and reader->rest when this is RECORDING_INPUT. */
static enum recording_result read_block(struct recording_reader *reader)
{
	struct block_head head;
	enum recording_result result = read_block_head(reader, &head);
	uint64_t start = reader->position;

	if (result != RECORDING_INPUT)
		return result;
	buffer_clear(&reader->payload);
	if (buffer_reserve(&reader->payload, head.payload_bytes))
		return stop(reader, RECORDING_IO_ERROR, start, "out of memory");
	result = read_bytes(reader, reader->payload.data, head.payload_bytes);
	if (result != RECORDING_INPUT)
		return result;
	reader->payload.size = head.payload_bytes;
	reader->rest = buffer_bytes(&reader->payload);
	if (head.payload_crc != crc_of(reader->rest))
		return stop(reader, RECORDING_DAMAGED, start, "a block is damaged");
	reader->in_closing = head.kind == BLOCK_CLOSING;
	reader->block_number++;
	return RECORDING_INPUT;
}

/* Says what is wrong in its own words: no block, and so no place, is at fault. */
static int refuse(struct recording_reader *reader, int err, const char *what)
{
	reader->result = err == -EIO ? RECORDING_IO_ERROR : RECORDING_DAMAGED;
	snprintf(reader->error, sizeof(reader->error), "%s", what);
	return err;
}

static int refuse_version(struct recording_reader *reader, const char *what, unsigned int theirs,
			  unsigned int ours)
{
	char text[sizeof(reader->error)];

	snprintf(text, sizeof(text),
		 "it has %s version %u and this build reads version %u: "
		 "replay it with the nightclerk that recorded it",
		 what, theirs, ours);
	return refuse(reader, -EPROTONOSUPPORT, text);
}

static int read_magic(struct recording_reader *reader, struct bytes begin)
{
	uint8_t head[FILE_HEAD_BYTES] = {0};
	enum recording_result result;
	uint16_t version;

	begin.size = begin.size < sizeof(file_magic) ? begin.size : sizeof(file_magic);
	if (begin.size)
		memcpy(head, begin.data, begin.size);
	reader->position = begin.size;
	result = read_bytes(reader, head + begin.size, sizeof(head) - begin.size);

	if (result == RECORDING_IO_ERROR)
		return -EIO;
	if (reader->position == 0)
		return refuse(reader, -EBADMSG, "the file is empty");
	if (result != RECORDING_INPUT || memcmp(head, file_magic, sizeof(file_magic)) != 0)
		return refuse(reader, -EBADMSG, "it is not a nightclerk recording");
	memcpy(&version, head + sizeof(file_magic), sizeof(version));
	if (version != RECORDING_VERSION)
		return refuse_version(reader, "format", version, RECORDING_VERSION);
	return 0;
}

static int read_header(struct recording_reader *reader)
{
	const char *wrong;
	char text[sizeof(reader->error)];
	int err;

	switch (read_block(reader)) {
	case RECORDING_INPUT:
		break;
	case RECORDING_IO_ERROR:
		return -EIO;
	default:
		return -EBADMSG;
	}
	err = recording_take_facts(reader->rest, &reader->facts, &reader->policy, &wrong);
	reader->rest = (struct bytes){0};
	if (err == -EBADMSG) {
		snprintf(text, sizeof(text), "its header has no good %s", wrong);
		return refuse(reader, err, text);
	}
	if (err == -EPROTONOSUPPORT)
		return refuse(reader, err,
			      "its wire events have another layout than this build reads: "
			      "replay it with the nightclerk that recorded it");
	return err;
}

bool recording_is_begun(struct bytes begin)
{
	return begin.size >= sizeof(file_magic) && memcmp(begin.data, file_magic, sizeof(file_magic)) == 0;
}

int recording_reader_new(FILE *file, struct recording_reader **ret_reader)
{
	return recording_reader_new_begun(file, (struct bytes){0}, ret_reader);
}

int recording_reader_new_begun(FILE *file, struct bytes begin, struct recording_reader **ret_reader)
{
	struct recording_reader *reader = calloc(1, sizeof(*reader));
	int err;

	if (!reader) {
		fclose(file);
		return -ENOMEM;
	}
	reader->file = file;
	reader->result = RECORDING_INPUT;
	err = read_magic(reader, begin);
	if (!err)
		err = read_header(reader);
	if (err == -ENOMEM) {
		recording_reader_free(reader);
		return err;
	}
	*ret_reader = reader;
	return err;
}

const struct run_facts *recording_facts(const struct recording_reader *reader)
{
	return &reader->facts;
}

/* The block that holds the closing input holds nothing else, and nothing follows it. */
static enum recording_result finish(struct recording_reader *reader)
{
	if (fgetc(reader->file) != EOF)
		return stop(reader, RECORDING_DAMAGED, reader->position,
			    "something follows the closing block");
	if (ferror(reader->file))
		return stop(reader, RECORDING_IO_ERROR, reader->position, "the file cannot be read");
	reader->result = RECORDING_END;
	return reader->result;
}

enum recording_result recording_next(struct recording_reader *reader, struct input *ret_input)
{
	const char *wrong;
	uint64_t start;

	if (reader->result != RECORDING_INPUT)
		return reader->result;
	if (reader->rest.size == 0) {
		if (reader->in_closing)
			return finish(reader);
		if (read_block(reader) != RECORDING_INPUT)
			return reader->result;
	}
	start = reader->position - reader->rest.size;
	wrong = recording_take_input(&reader->rest, &reader->room, ret_input);
	if (!wrong && ret_input->now_ns < reader->now_ns)
		wrong = "time runs backwards";
	if (!wrong && reader->in_closing != (ret_input->kind == INPUT_CLOSING))
		wrong = "the closing input is not in the closing block";
	if (!wrong && reader->in_closing && reader->rest.size)
		wrong = "something follows the closing input";
	if (wrong)
		return stop(reader, RECORDING_DAMAGED, start, wrong);
	reader->now_ns = ret_input->now_ns;
	return RECORDING_INPUT;
}

const char *recording_error(const struct recording_reader *reader)
{
	return reader->error;
}

void recording_reader_free(struct recording_reader *reader)
{
	if (!reader)
		return;
	fclose(reader->file);
	buffer_done(&reader->payload);
	buffer_done(&reader->policy);
	free(reader);
}
