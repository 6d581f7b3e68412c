/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a remembered attempt costs in memory, in every mix of families, by the
 * collector's own account of its allocations. A million of them have to fit
 * into LIMIT_REMEMBERED_BYTES; these are a sixteenth of that, at which tables
 * that double are as full as at a million.
 *
 * With a number of attempts as argument, and maybe a part of a mix's name, it
 * prints the figures of each mix, and the process's own RssAnon beside them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "attempts.h"
#include "limits.h"

#define SIXTEENTH (LIMIT_REMEMBERED_ATTEMPTS / 16)
#define SECOND 1000000000ULL

struct mix {
	const char *what;
	unsigned int family;	/* attempts of one fingerprint */
	unsigned int key_family; /* attempts of one key; 0 = no keys */
	unsigned int principals; /* 0 = none */
	unsigned int endings;	/* ways in which they end */
};

static struct digest digest_number(uint64_t space, uint64_t number)
{
	struct digest digest = {{0}};

	number = (number + 1) * 0x9e3779b97f4a7c15ULL + space;
	number ^= number >> 31;
	memcpy(digest.byte, &number, sizeof(number));
	memcpy(digest.byte + 8, &space, sizeof(space));
	return digest;
}

static struct call call_of(const struct mix *mix, uint64_t n)
{
	struct call call = {
		.number = n + 1,
		.process = {.tgid = 100, .start_ns = 5},
		.first_ns = (n + 1) * SECOND,
		.request_complete = true,
		.class = CLASS_MUTATING,
		.has_sha = true,
		.sha = digest_number(3, n / mix->family),
		.has_fingerprint = true,
		.fingerprint = digest_number(1, n / mix->family),
		.open = true,
	};
	static char key[24];

	if (mix->key_family) {
		snprintf(key, sizeof(key), "%llu", (unsigned long long)(n / mix->key_family));
		call.idem_state = IDEM_PRESENT;
		call.idem = bytes_of_string(key);
		call.key_scope = digest_number(2, n / mix->key_family);
	}
	if (mix->principals) {
		call.has_principal = true;
		call.principal = digest_number(4, n % mix->principals);
	}
	return call;
}

/* A 2xx, or one of many statuses. */
static void end_call(struct call *call, const struct mix *mix, uint64_t n)
{
	call->status = mix->endings > 1 ? 500 + (unsigned int)(n % mix->endings) : 200;
	call->status_ns = call->first_ns + 1000;
	call->status_in_time = true;
	call->response_complete = true;
	call->response_last_ns = call->first_ns + 2000;
	call->delivered = DELIVERED_ALL;
}

static struct attempts *remember(const struct mix *mix, uint64_t count, size_t max_bytes)
{
	struct attempts_options options = {.across_processes = true, .max_remembered = count, .max_bytes = max_bytes};
	struct attempts *attempts = attempts_new(&options);
	struct judgement judgement;

	for (uint64_t n = 0; n < count; n++) {
		struct call call = call_of(mix, n);

		assert_int_equal(attempts_add(attempts, &call, &judgement), 0);
		end_call(&call, mix, n);
		attempts_update(attempts, &call);
	}
	return attempts;
}

static const struct mix mixes[] = {
	{"all different", 1, 0, 0, 1},
	{"pairs", 2, 0, 0, 1},
	{"fives", 5, 0, 0, 1},
	{"families of a hundred", 100, 0, 0, 1},
	{"one family", 1U << 31, 0, 0, 1},
	{"key: all different", 1, 1, 0, 1},
	{"key: pairs", 2, 2, 0, 1},
	{"key: threes", 3, 3, 0, 1},
	{"key: fives", 5, 5, 0, 1},
	{"key: nines", 9, 9, 0, 1},
	{"key: families of 17", 17, 17, 0, 1},
	{"key: families of 33", 33, 33, 0, 1},
	{"key: families of 65", 65, 65, 0, 1},
	{"key: families of 97", 97, 97, 0, 1},
	{"key: families of 129", 129, 129, 0, 1},
	{"key: families of 200", 200, 200, 0, 1},
	{"key: families of 1000", 1000, 1000, 0, 1},
	{"key: one family", 1U << 31, 1U << 31, 0, 1},
	{"key: pairs of one key, all of one fingerprint", 1U << 31, 2, 0, 1},
	{"key: pairs of one fingerprint, all of one key", 2, 1U << 31, 0, 1},
	{"key: families of 129, two endings", 129, 129, 0, 2},
	{"families of 1000, of ten principals", 1000, 0, 10, 1},
};

static void a_million_fit_in_every_mix(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(mixes) / sizeof(mixes[0]); i++) {
		struct attempts *attempts = remember(&mixes[i], SIXTEENTH, 0);

		assert_int_equal(attempts_count(attempts), SIXTEENTH);
		if (attempts_bytes(attempts) > LIMIT_REMEMBERED_BYTES / 16)
			fail_msg("%s: %zu bytes each", mixes[i].what, attempts_bytes(attempts) / SIXTEENTH);
		attempts_free(attempts);
	}
}

/* What takes more, by design of its traffic or of an attacker: room is made in time, and it is said. */
static void the_oldest_go_where_they_would_not_fit(void **state)
{
	const struct mix costly[] = {
		{"one family, each of another principal", 1U << 31, 0, 1U << 30, 1},
		{"one family, each of another principal and key", 1U << 31, 1, 1U << 30, 40},
		{"key: families of 97, each ends in another way", 97, 97, 0, 97},
	};
	const size_t max_bytes = LIMIT_REMEMBERED_BYTES / 16;

	(void)state;
	for (size_t i = 0; i < sizeof(costly) / sizeof(costly[0]); i++) {
		struct attempts *attempts = remember(&costly[i], SIXTEENTH, max_bytes);

		assert_in_range(attempts_bytes(attempts), max_bytes / 10 * 9, max_bytes + 4096); /* one attempt more */
		assert_int_equal(attempts_count(attempts) + attempts_evicted(attempts), SIXTEENTH);
		assert_in_range(attempts_evicted(attempts), 1, SIXTEENTH / 10 * 9);
		attempts_free(attempts);
	}
}

/* Nothing is lost of the account: what is forgotten is given back. */
static void a_memory_that_turns_over_does_not_grow(void **state)
{
	const struct mix turning[] = {
		{"key: families of 60, two endings, three principals", 60, 60, 3, 2},
		{"key: families of 150, two endings, three principals", 150, 150, 3, 2},
		{"key: one family", 1U << 31, 1U << 31, 0, 1},
	};
	struct attempts_options options = {.across_processes = true, .max_remembered = 5000};

	(void)state;
	for (size_t i = 0; i < sizeof(turning) / sizeof(turning[0]); i++) {
		struct attempts *attempts = attempts_new(&options);
		struct judgement judgement;
		size_t after[10];

		for (uint64_t n = 0; n < 50000; n++) {
			struct call call = call_of(&turning[i], n);

			assert_int_equal(attempts_add(attempts, &call, &judgement), 0);
			end_call(&call, &turning[i], n);
			attempts_update(attempts, &call);
			after[n / 5000] = attempts_bytes(attempts);
		}
		assert_in_range(after[9], after[1] / 100 * 95, after[1] / 100 * 105);
		attempts_free(attempts);
	}
}

static unsigned long own_rss_kib(void)
{
	FILE *status = fopen("/proc/self/status", "r");
	unsigned long kib = 0;
	char line[256];

	while (status && fgets(line, sizeof(line), status))
		sscanf(line, "RssAnon: %lu", &kib);
	if (status)
		fclose(status);
	return kib;
}

/* Each in a process of its own, so that none finds the memory of another. */
static void print_figures(uint64_t count, const char *only)
{
	for (size_t i = 0; i < sizeof(mixes) / sizeof(mixes[0]); i++) {
		struct attempts *attempts;
		double bytes;

		fflush(stdout);
		if (!strstr(mixes[i].what, only))
			continue;
		if (fork()) {
			wait(NULL);
			continue;
		}
		attempts = remember(&mixes[i], count, LIMIT_REMEMBERED_BYTES);
		bytes = (double)attempts_bytes(attempts);
		printf("%-46s %8zu remembered, %6.1f bytes each, %6.1f MiB by account, RssAnon %6.1f MiB, %4.1f pairs judged each\n",
		       mixes[i].what, attempts_count(attempts), bytes / (double)attempts_count(attempts), bytes / (1 << 20),
		       (double)own_rss_kib() / 1024, (double)attempts_looked_at(attempts) / (double)count);
		exit(0);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_million_fit_in_every_mix),
		cmocka_unit_test(the_oldest_go_where_they_would_not_fit),
		cmocka_unit_test(a_memory_that_turns_over_does_not_grow),
	};

	if (argc > 1) {
		print_figures(strtoull(argv[1], NULL, 10), argc > 2 ? argv[2] : "");
		return 0;
	}
	return cmocka_run_group_tests_name("attempts memory", tests, NULL, NULL);
}
