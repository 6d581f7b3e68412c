/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a scene ends with: the findings that stand, upgrades applied.
 */
#ifndef NIGHTCLERK_SCENE_FINDINGS_H
#define NIGHTCLERK_SCENE_FINDINGS_H

#include "scene.h"

/* The ledger line of that id, counted from 1; 0 = none, as for no id. */
static inline int scene_row_of(const struct scene *scene, const char *id)
{
	for (size_t i = 0; id && i < json_object_array_length(scene->ledger); i++)
		if (strcmp(scene_field(json_object_array_get_idx(scene->ledger, i), "id"), id) == 0)
			return (int)i + 1;
	return 0;
}

/* What a finding became: the last upgrade of that attempt, or NULL. "none", "dup_after_timeout high" */
static inline json_object *scene_upgrade_of(const struct scene *scene, const char *of)
{
	json_object *event, *last = NULL;

	for (size_t n = 0; (event = scene_event(scene, "upgrade", n)); n++)
		if (strcmp(scene_field(event, "of"), of) == 0)
			last = event;
	return last;
}

/*
 * "dup_after_success high 1-2; safe_retry info 3-4", in order of the events:
 * only findings about a pair. text holds size bytes.
 */
static inline void scene_standing(const struct scene *scene, char *text, size_t size)
{
	json_object *event;
	size_t used = 0;

	text[0] = '\0';
	for (size_t n = 0; (event = scene_event(scene, "finding", n)); n++) {
		const char *of = scene_field(event, "of"), *earlier = scene_field(event, "earlier");
		json_object *upgrade;
		char said[96];

		if (!earlier)
			continue;
		upgrade = scene_upgrade_of(scene, of);
		snprintf(said, sizeof(said), "%s %s", scene_field(event, "finding"),
			 scene_field(event, "severity") ? scene_field(event, "severity") : "null");
		if (upgrade)
			snprintf(said, sizeof(said), "%s", scene_field(upgrade, "to"));
		if (strcmp(said, "none") == 0)
			continue;
		used += (size_t)snprintf(text + used, size - used, "%s%s %d-%d", used ? "; " : "", said,
					 scene_row_of(scene, earlier), scene_row_of(scene, of));
		assert_true(used < size);
	}
}

#endif
