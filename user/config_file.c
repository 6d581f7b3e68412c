/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Read strictly: an unknown field is a mistake in writing, and an option that
 * is not set by it would not be missed for weeks.
 */
#include "config_file.h"
#include "file_text.h"
#include "json_scan.h"
#include "json_syntax.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define NAME_MAX_BYTES 64

struct config {
	const char *file;
	const uint8_t *start;
	char *room; /* for the next value */
	config_take *take;
	void *context;
};

static int complain(const struct config *config, const uint8_t *at, const char *name, const char *what)
{
	unsigned int line, column;

	json_place(config->start, at, &line, &column);
	fprintf(stderr, "nightclerk: %s:%u:%u: %s%s%s\n", config->file, line, column, name, *name ? " " : "", what);
	return -EINVAL;
}

/* Decoded, with a NUL behind it; NULL where it holds one itself, or another control character. */
static const char *text_of(struct config *config, struct bytes value)
{
	char *text = config->room;
	size_t size = value.size;

	if (json_scan_is_string(value))
		size = json_scan_text(value, (uint8_t *)text, value.size, NULL);
	else
		memcpy(text, value.data, value.size);
	text[size] = '\0';
	for (size_t i = 0; i < size; i++)
		if ((uint8_t)text[i] < 0x20 || text[i] == 0x7f)
			return NULL;
	config->room += size + 1;
	return text;
}

static int take_field(struct config *config, struct bytes name_text, struct bytes value)
{
	bool off = bytes_equal(value, BYTES("false")), on = json_scan_is_true(value);
	char name[NAME_MAX_BYTES + 1], reason[CONFIG_REASON_MAX] = "";
	bool is_text = json_scan_is_string(value) || (value.data[0] >= '0' && value.data[0] <= '9');
	bool cut = false;
	const char *text;

	name[json_scan_text(name_text, (uint8_t *)name, sizeof(name) - 1, &cut)] = '\0';
	if (cut)
		return complain(config, name_text.data, "", "no option has a name that long");
	if (!on && !off && !is_text)
		return complain(config, value.data, name, "is a text, a number, true or false");
	text = is_text ? text_of(config, value) : off ? "" : NULL;
	if (is_text && !text)
		return complain(config, value.data, name, "holds a control character");
	if (config->take(config->context, name, text, off, reason))
		return complain(config, name_text.data, name, reason);
	return 0;
}

static bool is_repeated(struct bytes whole, struct bytes name)
{
	struct json_scan scan;
	struct bytes other, value;

	json_scan_open(&scan, whole);
	while (json_scan_next(&scan, &other, &value) && other.data < name.data)
		if (bytes_equal(other, name))
			return true;
	return false;
}

static int take_all(struct config *config, struct bytes whole)
{
	struct json_scan scan;
	struct bytes name, value;
	int err = 0;

	json_scan_open(&scan, whole);
	while (!err && json_scan_next(&scan, &name, &value)) {
		if (is_repeated(whole, name))
			err = complain(config, name.data, "", "this field is there already");
		else
			err = take_field(config, name, value);
	}
	return err;
}

int config_file_parse(const char *name, struct bytes text, config_take *take, void *context, char **ret_texts)
{
	/* Each value with a NUL, and a NUL behind the text itself. */
	char *room = malloc(2 * text.size + 2), reason[JSON_SYNTAX_REASON_MAX];
	struct config config = {.file = name, .take = take, .context = context};
	struct bytes copy = {(const uint8_t *)room, text.size}, whole;
	const uint8_t *at;
	int err;

	*ret_texts = room;
	if (!room)
		return -ENOMEM;
	if (text.size)
		memcpy(room, text.data, text.size);
	room[text.size] = '\0';
	config.start = copy.data;
	config.room = room + text.size + 1;
	err = json_syntax_check(copy, "the options", &at, reason);
	if (err == -EINVAL)
		return complain(&config, at, "", reason);
	if (err)
		return err;
	if (!json_scan_whole(copy, &whole) || !json_scan_is_object(whole))
		return complain(&config, json_skip_space(copy.data, copy.data + copy.size), "",
				"this is no object: {\"directory\": \"/var/log/nightclerk\"}");
	return take_all(&config, whole);
}

int config_file_read(const char *path, config_take *take, void *context, char **ret_texts)
{
	struct buffer text = {0};
	int err = file_text_read(path, CONFIG_FILE_MAX, &text);

	*ret_texts = NULL;
	if (!err && text.size > CONFIG_FILE_MAX)
		err = -EFBIG;
	if (err)
		fprintf(stderr, "nightclerk: cannot read the options in %s: %s\n", path, strerror(-err));
	else
		err = config_file_parse(path, buffer_bytes(&text), take, context, ret_texts);
	buffer_done(&text);
	return err;
}
