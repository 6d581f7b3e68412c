/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Matching without recursion: after a mismatch only the last wildcard is tried
 * again, one byte or one segment further on, since what an earlier one could
 * still take the last one can take as well.
 */
#include "glob.h"
#include "ascii.h"

static bool matches(struct bytes glob, struct bytes text, bool nocase)
{
	size_t g = 0, t = 0, star = SIZE_MAX, star_at = 0;

	while (t < text.size) {
		if (g < glob.size && glob.data[g] == '*') {
			star = g++;
			star_at = t;
		} else if (g < glob.size &&
			   (glob.data[g] == text.data[t] ||
			    (nocase && ascii_lower(glob.data[g]) == ascii_lower(text.data[t])))) {
			g++;
			t++;
		} else if (star != SIZE_MAX) {
			g = star + 1;
			t = ++star_at;
		} else {
			return false;
		}
	}
	while (g < glob.size && glob.data[g] == '*')
		g++;
	return g == glob.size;
}

bool glob_text_matches(struct bytes glob, struct bytes text)
{
	return matches(glob, text, false);
}

bool glob_text_matches_nocase(struct bytes glob, struct bytes text)
{
	return matches(glob, text, true);
}

/* ---- paths ---- */

/* A text as the segments that are left of it; "/a/" has two, "a" and "". */
struct segments {
	struct bytes rest; /* starts at a slash, or at the start of a text that has none there */
	bool done;
};

static struct segments segments_of(struct bytes path)
{
	return (struct segments){.rest = path, .done = path.size == 0};
}

static struct bytes next_segment(struct segments *segments)
{
	struct bytes segment;

	if (segments->rest.size && segments->rest.data[0] == '/')
		bytes_take(&segments->rest, 1);
	segment = bytes_take(&segments->rest, bytes_find(segments->rest, '/'));
	segments->done = segments->rest.size == 0;
	return segment;
}

bool glob_path_matches(struct bytes glob, struct bytes path)
{
	struct segments g = segments_of(glob), p = segments_of(path);
	struct segments after_stars = {.done = true}, stars_at = {.done = true};
	bool stars = false;

	for (;;) {
		struct segments g_next = g, p_next = p;
		struct bytes wanted = g.done ? (struct bytes){0} : next_segment(&g_next);

		if (!g.done && bytes_equal(wanted, BYTES("**"))) {
			stars = true;
			g = after_stars = g_next;
			stars_at = p;
			continue;
		}
		if (g.done && p.done)
			return true;
		if (!g.done && !p.done && glob_text_matches(wanted, next_segment(&p_next))) {
			g = g_next;
			p = p_next;
			continue;
		}
		if (!stars || stars_at.done)
			return false;
		next_segment(&stars_at);
		g = after_stars;
		p = stars_at;
	}
}

/* ---- what is wrong ---- */

static bool has_control(struct bytes text)
{
	for (size_t i = 0; i < text.size; i++)
		if (text.data[i] < 0x20 || text.data[i] == 0x7f)
			return true;
	return false;
}

static bool has_two_stars(struct bytes text)
{
	for (size_t i = 1; i < text.size; i++)
		if (text.data[i] == '*' && text.data[i - 1] == '*')
			return true;
	return false;
}

const char *glob_text_wrong(struct bytes glob)
{
	if (glob.size == 0)
		return "it is empty";
	if (glob.size > GLOB_BYTES_MAX)
		return "it is longer than 256 bytes";
	if (has_control(glob))
		return "it holds a control character";
	if (has_two_stars(glob))
		return "** is for paths; one * stands for any bytes here";
	return NULL;
}

const char *glob_path_wrong(struct bytes glob)
{
	struct segments segments = segments_of(glob);

	if (glob.size == 0)
		return "it is empty";
	if (glob.size > GLOB_BYTES_MAX)
		return "it is longer than 256 bytes";
	if (has_control(glob))
		return "it holds a control character";
	if (glob.data[0] != '/')
		return "a path starts with /";
	if (bytes_find(glob, '?') < glob.size || bytes_find(glob, '#') < glob.size)
		return "a path has no query and no fragment: ? and # never match";
	while (!segments.done) {
		struct bytes segment = next_segment(&segments);

		if (has_two_stars(segment) && segment.size > 2)
			return "** stands alone between two slashes";
	}
	return NULL;
}
