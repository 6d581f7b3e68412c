/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * flaky-tool: an agent's tool that charges a card and retries a success. It
 * posts a charge, gives the answer 50 ms, and takes a late, cut or short answer
 * as a reason to post the same charge again. With --key every try carries one
 * Idempotency-Key. It talks to loopback only. Shares no code with the observer.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define READ_BYTES 64 /* at a time, so that an answer takes several reads */
#define ANSWER_MAX (64 * 1024)
#define BETWEEN_TRIES_MS 20

struct options {
	bool key;
	unsigned long amount;
	unsigned long timeout_ms;
	unsigned long tries;
};

struct target {
	struct sockaddr_storage address;
	socklen_t address_bytes;
	char host[64]; /* as written, with the port */
	char path[512];
};

struct answer {
	char text[ANSWER_MAX + 1];
	size_t size;
	const char *body;
	size_t body_bytes;
};

enum outcome { OUTCOME_ANSWER, OUTCOME_NO_CONNECTION, OUTCOME_TIMEOUT, OUTCOME_CUT };

static const char *const outcome_words[] = {
	[OUTCOME_ANSWER] = "answered",
	[OUTCOME_NO_CONNECTION] = "no connection",
	[OUTCOME_TIMEOUT] = "no whole answer in time",
	[OUTCOME_CUT] = "the answer was cut",
};

static long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static bool parse_number(const char *text, unsigned long max, unsigned long *ret_value)
{
	char *end;

	errno = 0;
	*ret_value = strtoul(text, &end, 10);
	return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 && *ret_value <= max;
}

/* ---- where to ---- */

/* Names are not resolved: only what is loopback by its own text is taken. */
static bool parse_host(const char *host, uint16_t port, struct target *target)
{
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)&target->address;
	struct sockaddr_in *four = (struct sockaddr_in *)&target->address;

	memset(&target->address, 0, sizeof(target->address));
	if (!strcmp(host, "localhost"))
		host = "127.0.0.1";
	if (inet_pton(AF_INET, host, &four->sin_addr) == 1) {
		four->sin_family = AF_INET;
		four->sin_port = htons(port);
		target->address_bytes = sizeof(*four);
		return ntohl(four->sin_addr.s_addr) >> 24 == 127;
	}
	if (strcmp(host, "[::1]") != 0)
		return false;
	six->sin6_family = AF_INET6;
	six->sin6_port = htons(port);
	six->sin6_addr = in6addr_loopback;
	target->address_bytes = sizeof(*six);
	return true;
}

/* http://HOST[:PORT][/PATH]; a message is printed on failure. */
static bool parse_url(const char *url, struct target *target)
{
	static const char scheme[] = "http://";
	const char *start = url + sizeof(scheme) - 1;
	unsigned long port = 80;
	char host[64];
	const char *slash;
	char *colon;
	size_t n;

	if (strncmp(url, scheme, sizeof(scheme) - 1) != 0) {
		fprintf(stderr, "flaky-tool: %s: the URL must start with http://\n", url);
		return false;
	}
	slash = strchr(start, '/');
	n = slash ? (size_t)(slash - start) : strlen(start);
	if (n >= sizeof(host) || (slash && strlen(slash) >= sizeof(target->path))) {
		fprintf(stderr, "flaky-tool: the URL is too long\n");
		return false;
	}
	memcpy(host, start, n);
	host[n] = '\0';
	memcpy(target->host, host, n + 1);
	snprintf(target->path, sizeof(target->path), "%s", slash ? slash : "/");
	colon = strrchr(host, ':');
	if (colon && !strchr(colon, ']')) {
		*colon = '\0';
		if (!parse_number(colon + 1, 65535, &port)) {
			fprintf(stderr, "flaky-tool: %s: bad port\n", url);
			return false;
		}
	}
	if (!parse_host(host, (uint16_t)port, target)) {
		fprintf(stderr,
			"flaky-tool: refused: '%s' is not loopback; use 127.0.0.1, [::1] or "
			"localhost\n",
			host);
		return false;
	}
	return true;
}

/* ---- one try ---- */

static bool send_all(int fd, const char *data, size_t size)
{
	while (size > 0) {
		ssize_t n = send(fd, data, size, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return false;
		data += n;
		size -= (size_t)n;
	}
	return true;
}

/* True once the head and all that Content-Length promises are there. */
static bool answer_is_whole(struct answer *answer)
{
	unsigned long length = 0;
	const char *end, *field;

	answer->text[answer->size] = '\0';
	end = strstr(answer->text, "\r\n\r\n");
	if (!end)
		return false;
	field = strcasestr(answer->text, "\r\nContent-Length:");
	if (field && field < end)
		length = strtoul(field + sizeof("\r\nContent-Length:") - 1, NULL, 10);
	answer->body = end + 4;
	answer->body_bytes = answer->size - (size_t)(answer->body - answer->text);
	return answer->body_bytes >= length;
}

static enum outcome read_answer(int fd, long timeout_ms, struct answer *answer)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
	long deadline_ms = now_ms() + timeout_ms;

	answer->size = 0;
	while (!answer_is_whole(answer)) {
		long left_ms = deadline_ms - now_ms();
		ssize_t n;

		if (left_ms <= 0 || poll(&poll_fd, 1, (int)left_ms) == 0)
			return OUTCOME_TIMEOUT;
		if (answer->size + READ_BYTES > ANSWER_MAX)
			return OUTCOME_CUT;
		n = recv(fd, answer->text + answer->size, READ_BYTES, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return OUTCOME_CUT;
		answer->size += (size_t)n;
	}
	return OUTCOME_ANSWER;
}

static enum outcome try_once(const struct target *target, const char *request, long timeout_ms,
			     struct answer *answer)
{
	enum outcome outcome = OUTCOME_NO_CONNECTION;
	int fd = socket(target->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return outcome;
	if (!connect(fd, (const struct sockaddr *)&target->address, target->address_bytes))
		outcome = send_all(fd, request, strlen(request))
				  ? read_answer(fd, timeout_ms, answer)
				  : OUTCOME_CUT;
	close(fd);
	return outcome;
}

/* ---- the tool ---- */

/* False when it does not fit, or there is no randomness for a key. */
static bool make_request(const struct options *options, const struct target *target, char *request,
			 size_t size)
{
	uint8_t bytes[16];
	char key[sizeof(bytes) * 2 + 1] = "", field[96] = "", body[96];
	int body_bytes, n;

	if (options->key) {
		if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
			return false;
		for (size_t i = 0; i < sizeof(bytes); i++)
			snprintf(key + 2 * i, 3, "%02x", bytes[i]);
		snprintf(field, sizeof(field), "Idempotency-Key: %s\r\n", key);
	}
	body_bytes = snprintf(body, sizeof(body), "{\"amount\": %lu, \"currency\": \"eur\"}",
			      options->amount);
	n = snprintf(request, size,
		     "POST %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: flaky-tool\r\n%s"
		     "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		     target->path, target->host, field, body_bytes, body);
	return n > 0 && (size_t)n < size;
}

static int charge(const struct options *options, const struct target *target)
{
	static struct answer answer;
	char request[2048];

	if (!make_request(options, target, request, sizeof(request))) {
		fprintf(stderr, "flaky-tool: cannot make the request\n");
		return 1;
	}
	for (unsigned long attempt = 1; attempt <= options->tries; attempt++) {
		enum outcome outcome =
			try_once(target, request, (long)options->timeout_ms, &answer);

		if (outcome == OUTCOME_ANSWER) {
			printf("%.*s\n", (int)answer.body_bytes, answer.body);
			return 0;
		}
		fprintf(stderr, "flaky-tool: try %lu of %lu: %s\n", attempt, options->tries,
			outcome_words[outcome]);
		if (attempt < options->tries)
			usleep(BETWEEN_TRIES_MS * 1000);
	}
	return 1;
}

static void usage(FILE *out)
{
	fputs("usage: flaky-tool [--key] [--amount N] [--timeout-ms N] [--tries N] "
	      "http://127.0.0.1:PORT/v1/charges\n"
	      "Posts a charge; a late, cut or short answer makes it post the same charge again.\n"
	      "  --key           send one Idempotency-Key on every try\n"
	      "  --amount N      what to charge (default 500)\n"
	      "  --timeout-ms N  wait so long for the whole answer (default 50)\n"
	      "  --tries N       give up after so many tries, 20 ms apart (default 3)\n"
	      "Exit status: 0 answered (the body is printed), 1 no answer, 2 wrong usage or not "
	      "loopback.\n",
	      out);
}

static bool parse_option(int option, const char *argument, struct options *options)
{
	switch (option) {
	case 'k':
		options->key = true;
		return true;
	case 'a':
		return parse_number(argument, 1000000000, &options->amount);
	case 't':
		return parse_number(argument, 600000, &options->timeout_ms);
	case 'n':
		return parse_number(argument, 1000, &options->tries) && options->tries > 0;
	default:
		return false;
	}
}

int main(int argc, char **argv)
{
	static const struct option names[] = {
		{"key", no_argument, NULL, 'k'},
		{"amount", required_argument, NULL, 'a'},
		{"timeout-ms", required_argument, NULL, 't'},
		{"tries", required_argument, NULL, 'n'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	struct options options = {.amount = 500, .timeout_ms = 50, .tries = 3};
	struct target target;
	int option;

	while ((option = getopt_long(argc, argv, "h", names, NULL)) != -1) {
		if (option == 'h') {
			usage(stdout);
			return 0;
		}
		if (!parse_option(option, optarg, &options)) {
			if (option != '?')
				fprintf(stderr, "flaky-tool: bad value '%s'\n", optarg);
			usage(stderr);
			return 2;
		}
	}
	if (optind + 1 != argc) {
		usage(stderr);
		return 2;
	}
	if (!parse_url(argv[optind], &target))
		return 2;
	return charge(&options, &target);
}
