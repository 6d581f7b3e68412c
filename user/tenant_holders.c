/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How many tenants each holder has. Where there is no room left, one that has his share
 * makes room himself, so that a user who makes cgroups without end closes no
 * ledger but his own.
 */
#include "tenants_private.h"

struct tenant_holder *tenant_holders_join(struct tenant_holder **holders, const struct tenant_name *tenant)
{
	struct tenant_holder *holder;
	struct tenant_name name;

	tenant_name_of_holder(tenant, &name);
	HASH_FIND(hh, *holders, name.text, strlen(name.text), holder);
	if (!holder) {
		holder = calloc(1, sizeof(*holder));
		if (!holder)
			return NULL;
		holder->name = name;
		HASH_ADD_KEYPTR(hh, *holders, holder->name.text, strlen(holder->name.text), holder);
		if (!holder->hh.tbl) {
			free(holder);
			return NULL;
		}
	}
	holder->tenants++;
	return holder;
}

void tenant_holders_leave(struct tenant_holder **holders, struct tenant_holder *holder)
{
	if (!holder || --holder->tenants)
		return;
	HASH_DEL(*holders, holder);
	free(holder);
}

static bool is_quiet(const struct tenants *tenants, const struct tenant *tenant, uint64_t now_ns)
{
	return !tenant->connections && tenant->last_ns < now_ns && tenant != tenants->others;
}

/* Is a a better one to close than b? Who holds more than his share comes first, then who was quiet longest. */
static bool closes_before(const struct tenant *a, const struct tenant *b, size_t share)
{
	bool a_over = a->holder && a->holder->tenants > share, b_over = b->holder && b->holder->tenants > share;

	return a_over != b_over ? a_over : a->last_ns < b->last_ns;
}

struct tenant *tenant_holders_find_room(const struct tenants *tenants, const struct tenant_name *name, uint64_t now_ns)
{
	size_t share = tenants->options.max / TENANTS_HOLDER_PART ? tenants->options.max / TENANTS_HOLDER_PART : 1;
	struct tenant *found = NULL, *tenant;
	struct tenant_holder *holder;
	struct tenant_name holder_name;
	bool own;

	tenant_name_of_holder(name, &holder_name);
	HASH_FIND(hh, tenants->holders, holder_name.text, strlen(holder_name.text), holder);
	own = holder && holder->tenants >= share;
	for (tenant = tenants->names; tenant; tenant = tenant->hh.next)
		if (is_quiet(tenants, tenant, now_ns) && (!own || tenant->holder == holder) &&
		    (!found || closes_before(tenant, found, share)))
			found = tenant;
	return found;
}
