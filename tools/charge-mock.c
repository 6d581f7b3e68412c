/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * charge-mock: a server with one endpoint that has a side effect, and its own
 * log of what reached it. Tests compare what the observer wrote with this log,
 * so nothing here is shared with the observer: own HTTP reading, own hashing,
 * own JSON. Loopback only. One thread a connection; no pipelining.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/tcp.h>
#include <openssl/evp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define HEAD_MAX (64 * 1024)
#define BODY_MAX (256ULL * 1024 * 1024)
#define DELAYS_MAX 64
#define KEY_MAX 256
#define KEYS_MAX 65536

struct options {
	uint16_t port;
	const char *log_path;
	unsigned int delays_ms[DELAYS_MAX];
	size_t delay_count;
	long truncate_bytes;	  /* -1 = the first answer is sent whole */
	unsigned int after_leave; /* this many first answers wait until the client has closed */
};

struct key_entry {
	char key[KEY_MAX];
	unsigned int charge;
};

/* What the threads share; lock covers everything but options. */
static struct {
	struct options options;
	pthread_mutex_t lock;
	pthread_cond_t idle;
	FILE *log;
	bool log_failed;
	unsigned int charges;
	unsigned long requests;
	unsigned long long received_bytes;
	struct key_entry *keys;
	size_t key_count;
	int *open_fds; /* sockets of live connections, for the end */
	size_t open_count, open_capacity;
} mock = {.lock = PTHREAD_MUTEX_INITIALIZER, .idle = PTHREAD_COND_INITIALIZER};

struct connection {
	int fd;
	char buffer[HEAD_MAX + 1]; /* bytes received and not used yet, and room for a NUL */
	size_t used;
	unsigned long long received_bytes;
};

struct request {
	char method[32];
	char path[2048]; /* without query */
	char key[KEY_MAX];
	bool has_key, chunked, expects, close;
	unsigned long long length; /* Content-Length, then what was really read */
	char sha[65];
};

enum read_result { READ_OK, READ_ENDED, READ_BAD };

/* ---- reading a request ---- */

static bool connection_fill(struct connection *c)
{
	ssize_t n;

	if (c->used == HEAD_MAX)
		return false;
	do
		n = recv(c->fd, c->buffer + c->used, HEAD_MAX - c->used, 0);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return false;
	c->used += (size_t)n;
	c->received_bytes += (unsigned long long)n;
	return true;
}

static void connection_drop(struct connection *c, size_t n)
{
	c->used -= n;
	memmove(c->buffer, c->buffer + n, c->used);
}

/* A run of decimal or hex digits and nothing else (RFC 9112 sections 6.2 and 7.1). */
static bool parse_digits(const char *text, size_t n, unsigned int base,
			 unsigned long long *ret_value)
{
	static const char digits[] = "0123456789abcdef";
	unsigned long long value = 0;

	if (n == 0 || n > 15)
		return false;
	for (size_t i = 0; i < n; i++) {
		char c = text[i] >= 'A' && text[i] <= 'F' ? (char)(text[i] + 32) : text[i];
		const char *at = c ? strchr(digits, c) : NULL;

		if (!at || (unsigned int)(at - digits) >= base)
			return false;
		value = value * base + (unsigned int)(at - digits);
	}
	*ret_value = value;
	return true;
}

/* value must have room for size bytes; false when it does not fit. */
static bool copy_text(char *value, size_t size, const char *text, size_t n)
{
	if (n >= size)
		return false;
	memcpy(value, text, n);
	value[n] = '\0';
	return true;
}

static bool parse_field(struct request *r, const char *line, size_t n)
{
	const char *colon = memchr(line, ':', n);
	size_t name;
	const char *value, *end = line + n;

	if (!colon)
		return false;
	name = (size_t)(colon - line);
	for (value = colon + 1; value < end && (*value == ' ' || *value == '\t'); value++)
		;
	while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	n = (size_t)(end - value);
	if (name == 14 && !strncasecmp(line, "Content-Length", name))
		return parse_digits(value, n, 10, &r->length) && r->length <= BODY_MAX;
	if (name == 17 && !strncasecmp(line, "Transfer-Encoding", name)) {
		r->chunked = n == 7 && !strncasecmp(value, "chunked", n);
		return r->chunked;
	}
	if (name == 15 && !strncasecmp(line, "Idempotency-Key", name)) {
		r->has_key = true;
		return copy_text(r->key, sizeof(r->key), value, n);
	}
	if (name == 6 && !strncasecmp(line, "Expect", name))
		r->expects = n == 12 && !strncasecmp(value, "100-continue", n);
	if (name == 10 && !strncasecmp(line, "Connection", name))
		r->close = n == 5 && !strncasecmp(value, "close", n);
	return true;
}

static bool parse_request_line(struct request *r, const char *line, size_t n)
{
	const char *end = line + n;
	const char *target = memchr(line, ' ', n);
	const char *version, *query;
	size_t path_bytes;

	if (!target)
		return false;
	if (!copy_text(r->method, sizeof(r->method), line, (size_t)(target - line)))
		return false;
	target++;
	version = memchr(target, ' ', (size_t)(end - target));
	if (!version || end - version != 9 || memcmp(version, " HTTP/1.", 8) != 0)
		return false;
	r->close = version[8] == '0';
	path_bytes = (size_t)(version - target);
	query = memchr(target, '?', path_bytes);
	if (query)
		path_bytes = (size_t)(query - target);
	return copy_text(r->path, sizeof(r->path), target, path_bytes);
}

static enum read_result read_head(struct connection *c, struct request *r)
{
	char *end, *line, *next;
	bool first = true;

	for (;;) {
		c->buffer[c->used] = '\0';
		end = memmem(c->buffer, c->used, "\r\n\r\n", 4);
		if (end)
			break;
		if (c->used == HEAD_MAX)
			return READ_BAD;
		if (!connection_fill(c))
			return c->used ? READ_BAD : READ_ENDED;
	}
	for (line = c->buffer; line < end + 2; line = next + 2) {
		next = memmem(line, (size_t)(end + 2 - line), "\r\n", 2);
		if (first ? !parse_request_line(r, line, (size_t)(next - line))
			  : !parse_field(r, line, (size_t)(next - line)))
			return READ_BAD;
		first = false;
	}
	connection_drop(c, (size_t)(end + 4 - c->buffer));
	return READ_OK;
}

static enum read_result read_hashed(struct connection *c, unsigned long long n, EVP_MD_CTX *hash)
{
	while (n > 0) {
		size_t take;

		if (c->used == 0 && !connection_fill(c))
			return READ_ENDED;
		take = n < c->used ? (size_t)n : c->used;
		EVP_DigestUpdate(hash, c->buffer, take);
		connection_drop(c, take);
		n -= take;
	}
	return READ_OK;
}

/* The next line without its CRLF: *ret_bytes long, at the start of the buffer. */
static enum read_result read_line(struct connection *c, size_t *ret_bytes)
{
	char *end;

	while (!(end = memmem(c->buffer, c->used, "\r\n", 2)))
		if (!connection_fill(c))
			return c->used == HEAD_MAX ? READ_BAD : READ_ENDED;
	*ret_bytes = (size_t)(end - c->buffer);
	return READ_OK;
}

/* RFC 9112 section 7.1; extensions and trailers are skipped. */
static enum read_result read_chunks(struct connection *c, struct request *r, EVP_MD_CTX *hash)
{
	unsigned long long size;
	enum read_result result;
	size_t line, digits;

	for (;;) {
		result = read_line(c, &line);
		if (result != READ_OK)
			return result;
		for (digits = 0; digits < line && c->buffer[digits] != ';'; digits++)
			;
		if (!parse_digits(c->buffer, digits, 16, &size) || r->length + size > BODY_MAX)
			return READ_BAD;
		connection_drop(c, line + 2);
		if (size == 0)
			break;
		r->length += size;
		result = read_hashed(c, size, hash);
		if (result == READ_OK)
			result = read_line(c, &line);
		if (result != READ_OK)
			return result;
		if (line != 0)
			return READ_BAD;
		connection_drop(c, 2);
	}
	do {
		result = read_line(c, &line);
		if (result != READ_OK)
			return result;
		connection_drop(c, line + 2);
	} while (line != 0);
	return READ_OK;
}

static enum read_result read_body(struct connection *c, struct request *r)
{
	EVP_MD_CTX *hash = EVP_MD_CTX_new();
	unsigned char digest[32];
	enum read_result result;

	if (!hash || !EVP_DigestInit_ex(hash, EVP_sha256(), NULL)) {
		EVP_MD_CTX_free(hash);
		return READ_BAD;
	}
	if (r->chunked) {
		r->length = 0;
		result = read_chunks(c, r, hash);
	} else {
		result = read_hashed(c, r->length, hash);
	}
	EVP_DigestFinal_ex(hash, digest, NULL);
	EVP_MD_CTX_free(hash);
	for (size_t i = 0; i < sizeof(digest); i++)
		snprintf(r->sha + 2 * i, 3, "%02x", digest[i]);
	return result;
}

/* ---- the log ---- */

/* Printable ASCII as it is, every other byte as \u00XX. */
static void log_string(const char *text)
{
	putc('"', mock.log);
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c < 0x20 || c > 0x7e || c == '"' || c == '\\')
			fprintf(mock.log, "\\u%04x", c);
		else
			putc(c, mock.log);
	}
	putc('"', mock.log);
}

/* Called with the lock held, so that the lines stand in the order of the charge ids. */
static void log_request(const struct request *r, unsigned int status, unsigned int charge)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	fprintf(mock.log, "{\"t\": %lld.%06ld, \"path\": ", (long long)now.tv_sec,
		now.tv_nsec / 1000);
	log_string(r->path);
	fprintf(mock.log, ", \"len\": %llu, \"sha\": \"%s\", \"idem\": ", r->length, r->sha);
	if (r->has_key)
		log_string(r->key);
	else
		fputs("null", mock.log);
	fputs(", \"method\": ", mock.log);
	log_string(r->method);
	fprintf(mock.log, ", \"status\": %u, \"charge_id\": ", status);
	if (charge)
		fprintf(mock.log, "\"ch_%04u\"}\n", charge);
	else
		fputs("null}\n", mock.log);
	if (fflush(mock.log))
		mock.log_failed = true;
}

/* ---- answering ---- */

struct plan { /* what is to happen with one request */
	unsigned int status;
	unsigned int charge;
	unsigned int delay_ms;
	bool first;
	bool after_leave;
};

/* A key that was seen before gives its charge again. Called with the lock held. */
static unsigned int mint_charge(const struct request *r)
{
	struct key_entry *keys;

	if (!r->has_key)
		return ++mock.charges;
	for (size_t i = 0; i < mock.key_count; i++)
		if (!strcmp(mock.keys[i].key, r->key))
			return mock.keys[i].charge;
	if (mock.key_count == KEYS_MAX)
		return 0;
	keys = realloc(mock.keys, (mock.key_count + 1) * sizeof(*keys));
	if (!keys)
		return 0;
	mock.keys = keys;
	keys[mock.key_count].charge = ++mock.charges;
	memcpy(keys[mock.key_count].key, r->key, sizeof(r->key));
	return keys[mock.key_count++].charge;
}

static struct plan plan_answer(const struct request *r)
{
	struct plan plan = {.status = 404};

	pthread_mutex_lock(&mock.lock);
	if (!strcmp(r->method, "POST") && !strcmp(r->path, "/v1/charges")) {
		plan.charge = mint_charge(r);
		plan.status = plan.charge ? 200 : 503;
	}
	if (mock.requests < mock.options.delay_count)
		plan.delay_ms = mock.options.delays_ms[mock.requests];
	plan.first = mock.requests == 0;
	plan.after_leave = mock.requests < mock.options.after_leave;
	mock.requests++;
	log_request(r, plan.status, plan.charge);
	pthread_mutex_unlock(&mock.lock);
	return plan;
}

static void wait_until_client_leaves(int fd)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLRDHUP};

	while (poll(&poll_fd, 1, -1) < 0 && errno == EINTR)
		;
}

static void wait_ms(unsigned int ms)
{
	struct timespec rest = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};

	while (nanosleep(&rest, &rest) < 0 && errno == EINTR)
		;
}

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

/* False: the connection is to be closed. */
static bool send_answer(struct connection *c, const struct request *r, const struct plan *plan)
{
	const char *reason = plan->status == 200   ? "OK"
			     : plan->status == 404 ? "Not Found"
						   : "Service Unavailable";
	bool cut = plan->first && mock.options.truncate_bytes >= 0;
	char body[128], answer[512];
	int body_bytes, head_bytes;
	size_t send_bytes;

	if (plan->charge)
		body_bytes = snprintf(body, sizeof(body),
				      "{\"ok\": true, \"charge_id\": \"ch_%04u\"}", plan->charge);
	else
		body_bytes = snprintf(body, sizeof(body), "{\"ok\": false}");
	head_bytes = snprintf(
		answer, sizeof(answer),
		"HTTP/1.1 %u %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n",
		plan->status, reason, body_bytes, r->close ? "Connection: close\r\n" : "");
	send_bytes = (size_t)body_bytes;
	if (cut && (size_t)mock.options.truncate_bytes < send_bytes)
		send_bytes = (size_t)mock.options.truncate_bytes;
	if (!strcmp(r->method, "HEAD"))
		send_bytes = 0;
	memcpy(answer + head_bytes, body, send_bytes);
	if (plan->after_leave)
		wait_until_client_leaves(c->fd);
	wait_ms(plan->delay_ms);
	return send_all(c->fd, answer, (size_t)head_bytes + send_bytes) && !cut && !r->close;
}

static void serve(struct connection *c)
{
	static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
	static const char bad[] =
		"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
	enum read_result result;
	struct request *r = malloc(sizeof(*r));

	if (!r)
		return;
	for (;;) {
		struct plan plan;

		memset(r, 0, sizeof(*r));
		result = read_head(c, r);
		if (result != READ_OK)
			break;
		if (r->expects && c->used == 0 && !send_all(c->fd, go_on, sizeof(go_on) - 1))
			break;
		result = read_body(c, r);
		if (result != READ_OK)
			break;
		plan = plan_answer(r);
		if (!send_answer(c, r, &plan))
			break;
	}
	if (result == READ_BAD)
		send_all(c->fd, bad, sizeof(bad) - 1);
	free(r);
}

/* ---- connections ---- */

static bool remember_open(int fd)
{
	bool done = true;

	pthread_mutex_lock(&mock.lock);
	if (mock.open_count == mock.open_capacity) {
		size_t capacity = mock.open_capacity ? 2 * mock.open_capacity : 64;
		int *fds = realloc(mock.open_fds, capacity * sizeof(*fds));

		done = fds != NULL;
		if (done) {
			mock.open_fds = fds;
			mock.open_capacity = capacity;
		}
	}
	if (done)
		mock.open_fds[mock.open_count++] = fd;
	pthread_mutex_unlock(&mock.lock);
	return done;
}

/* Closes under the lock: the end must not shut down a number that means another socket by now. */
static void forget_open(int fd, unsigned long long received_bytes)
{
	pthread_mutex_lock(&mock.lock);
	for (size_t i = 0; i < mock.open_count; i++) {
		if (mock.open_fds[i] == fd) {
			mock.open_fds[i] = mock.open_fds[--mock.open_count];
			break;
		}
	}
	mock.received_bytes += received_bytes;
	close(fd);
	if (mock.open_count == 0)
		pthread_cond_signal(&mock.idle);
	pthread_mutex_unlock(&mock.lock);
}

static void *connection_thread(void *argument)
{
	struct connection *c = argument;
	unsigned long long received_bytes;
	int fd = c->fd;

	serve(c);
	received_bytes = c->received_bytes;
	free(c);
	forget_open(fd, received_bytes); /* last: main() may end right after it */
	return NULL;
}

static void start_connection(int fd)
{
	struct connection *c = calloc(1, sizeof(*c));
	const int on = 1;
	pthread_t thread;

	if (!c || !remember_open(fd)) {
		free(c);
		close(fd);
		return;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	c->fd = fd;
	if (pthread_create(&thread, NULL, connection_thread, c)) {
		forget_open(fd, 0);
		free(c);
		return;
	}
	pthread_detach(thread);
}

/* Every connection is shut down and its thread awaited, so that the counts are final. */
static void end_connections(void)
{
	pthread_mutex_lock(&mock.lock);
	for (size_t i = 0; i < mock.open_count; i++)
		shutdown(mock.open_fds[i], SHUT_RDWR);
	while (mock.open_count > 0)
		pthread_cond_wait(&mock.idle, &mock.lock);
	pthread_mutex_unlock(&mock.lock);
}

/* ---- start ---- */

static void usage(FILE *out)
{
	fputs("usage: charge-mock [OPTION...]\n"
	      "POST /v1/charges mints a charge; a repeated Idempotency-Key gets the same one.\n"
	      "  --port N            port on 127.0.0.1; 0 (default) picks one\n"
	      "  --log FILE          own log, one JSON line a request, written before the answer\n"
	      "                      (default charge_mock.jsonl)\n"
	      "  --delay-ms N[,N...] wait before each answer, one value a request, 0 after the "
	      "last\n"
	      "  --truncate N        send the head and only N bytes of the body of the first "
	      "answer,\n"
	      "                      then close; Content-Length still tells the whole length\n"
	      "  --answer-after-client-leaves[=COUNT]\n"
	      "                      the first COUNT answers (default 1) wait until the client "
	      "has\n"
	      "                      closed its end, then are sent all the same\n"
	      "The first line on stdout is 'listening on 127.0.0.1:PORT'. SIGTERM and SIGINT end "
	      "it;\n"
	      "the last line then tells the requests and the bytes received.\n",
	      out);
}

static bool parse_number(const char *text, unsigned long max, unsigned long *ret_value)
{
	char *end;

	errno = 0;
	*ret_value = strtoul(text, &end, 10);
	return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 && *ret_value <= max;
}

static bool parse_delays(char *text, struct options *options)
{
	unsigned long value;
	char *part;

	while ((part = strsep(&text, ","))) {
		if (options->delay_count == DELAYS_MAX || !parse_number(part, 600000, &value))
			return false;
		options->delays_ms[options->delay_count++] = (unsigned int)value;
	}
	return true;
}

static bool parse_option(int option, char *argument, struct options *options)
{
	unsigned long value;

	switch (option) {
	case 'p':
		if (!parse_number(argument, 65535, &value))
			return false;
		options->port = (uint16_t)value;
		return true;
	case 'l':
		options->log_path = argument;
		return true;
	case 'd':
		return parse_delays(argument, options);
	case 't':
		if (!parse_number(argument, 1 << 20, &value))
			return false;
		options->truncate_bytes = (long)value;
		return true;
	case 'a':
		value = 1;
		if (argument && !parse_number(argument, 1 << 20, &value))
			return false;
		options->after_leave = (unsigned int)value;
		return true;
	default:
		return false;
	}
}

/* 0; 1: help was asked for; -1: wrong usage, and a message was printed. */
static int parse_options(int argc, char **argv, struct options *options)
{
	static const struct option names[] = {
		{"port", required_argument, NULL, 'p'},
		{"log", required_argument, NULL, 'l'},
		{"delay-ms", required_argument, NULL, 'd'},
		{"truncate", required_argument, NULL, 't'},
		{"answer-after-client-leaves", optional_argument, NULL, 'a'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int option;

	*options = (struct options){.log_path = "charge_mock.jsonl", .truncate_bytes = -1};
	while ((option = getopt_long(argc, argv, "h", names, NULL)) != -1) {
		if (option == 'h') {
			usage(stdout);
			return 1;
		}
		if (!parse_option(option, optarg, options)) {
			if (option != '?')
				fprintf(stderr, "charge-mock: bad value '%s'\n", optarg);
			usage(stderr);
			return -1;
		}
	}
	if (optind != argc) {
		usage(stderr);
		return -1;
	}
	return 0;
}

static int listen_on(uint16_t port, uint16_t *ret_port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
	socklen_t size = sizeof(address);
	const int on = 1;
	int fd;

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&address, size) || listen(fd, 128) ||
	    getsockname(fd, (struct sockaddr *)&address, &size)) {
		close(fd);
		return -1;
	}
	*ret_port = ntohs(address.sin_port);
	return fd;
}

static void accept_until_signal(int listen_fd, int signal_fd)
{
	struct pollfd fds[2] = {{.fd = listen_fd, .events = POLLIN},
				{.fd = signal_fd, .events = POLLIN}};

	for (;;) {
		int fd;

		if (poll(fds, 2, -1) < 0)
			continue;
		if (fds[1].revents)
			return;
		fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
		if (fd >= 0)
			start_connection(fd);
	}
}

int main(int argc, char **argv)
{
	int result, listen_fd, signal_fd;
	sigset_t signals;
	uint16_t port;

	result = parse_options(argc, argv, &mock.options);
	if (result != 0)
		return result < 0 ? 2 : 0;
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	signal_fd = signalfd(-1, &signals, SFD_CLOEXEC);
	mock.log = fopen(mock.options.log_path, "ae");
	if (signal_fd < 0 || !mock.log) {
		fprintf(stderr, "charge-mock: %s: %s\n", mock.options.log_path, strerror(errno));
		return 1;
	}
	listen_fd = listen_on(mock.options.port, &port);
	if (listen_fd < 0) {
		fprintf(stderr, "charge-mock: 127.0.0.1:%u: %s\n", mock.options.port,
			strerror(errno));
		return 1;
	}
	printf("listening on 127.0.0.1:%u\n", port);
	fflush(stdout);
	accept_until_signal(listen_fd, signal_fd);
	close(listen_fd);
	end_connections();
	printf("requests %lu, bytes received %llu\n", mock.requests, mock.received_bytes);
	free(mock.open_fds);
	free(mock.keys);
	fclose(mock.log);
	close(signal_fd);
	if (mock.log_failed)
		fprintf(stderr, "charge-mock: %s: a line could not be written\n",
			mock.options.log_path);
	return mock.log_failed ? 1 : 0;
}
