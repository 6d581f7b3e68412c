/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What stands on the screen, whole pictures compared: the main view on small,
 * usual and large terminals, the story of a call, the help, what is written
 * into a file, and bytes that want to move the cursor.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "screen_play.h"

static int set_up(void **state)
{
	static struct screen_play play;

	screen_play_start(&play, 80, 24);
	*state = &play;
	return 0;
}

static int tear_down(void **state)
{
	screen_play_done(*state);
	return 0;
}

static void nothing_has_happened_yet(void **state)
{
	assert_string_equal(screen_play_look(*state),
			    "watch pid 4101  LIVE                             0 calls, 0 high 0 medium 0 low\n"
			    "FINDINGS none\n"
			    "CALLS 0\n"
			    "  TIME         PID COMMAND    METHOD  ST   GOT      MS TARGET\n"
			    "no call yet: it shows when what is watched sends one\n"
			    "\n"
			    "\n"
			    "\n"
			    "\n"
			    "\n"
			    "\n"
			    "\n"
			    "\n"
			    "\n"
			    "\n"
			    "\n"
			    "\n"
			    "\n"
			    "\n"
			    "\n"
			    "PROCESSES AND PATHS 0, by duplicates\n"
			    "\n"
			    "not seen: holes 0  blind streams 0  broken 0  lost 0\n"
			    "? help  f findings  Enter open  Tab pane  / filter  s sort  p pause  q quit\n");
}

static void the_main_view(void **state)
{
	screen_play_knock_twice(*state);
	assert_string_equal(screen_play_look(*state),
			    "watch pid 4101  LIVE                             4 calls, 1 high 0 medium 0 low\n"
			    "FINDINGS 1 (and 1 of info): f and Enter show both attempts side by side\n"
			    "HIGH        dup_after_timeout          2 of 2 POST :8080/v1/charges\n"
			    "CALLS 4\n"
			    "  TIME         PID COMMAND    METHOD  ST   GOT      MS TARGET\n"
			    "+ 14:13:20    4101 agent      POST   200     2    80.0 :8080/v1/charges\n"
			    "H 14:13:20    4101 agent      POST   200     2     3.0 :8080/v1/charges\n"
			    "  14:13:20    4202 agent      POST   503     0     5.0 :8080/v1/refunds?key=~b9>\n"
			    "  14:13:20    4202 agent      GET    200     2     1.0 :8080/v1/charges\n"
			    "\n"
			    "\n"
			    "\n"
			    "\n"
			    "\n"
			    "\n"
			    "\n"
			    "\n"
			    "PROCESSES AND PATHS 3, by duplicates\n"
			    "    PID COMMAND     CALLS   MUT ATTEMPTS  DUPS LAST TOKENS PATH\n"
			    "   4101 agent           2     2        1     1  200      0 :8080/v1/charges\n"
			    "   4202 agent           1     1        0     0  503      0 :8080/v1/refunds\n"
			    "   4202 agent           1     0        0     0  200      0 :8080/v1/charges\n"
			    "not seen: holes 0  blind streams 0  broken 0  lost 0\n"
			    "? help  f findings  Enter open  Tab pane  / filter  s sort  p pause  q quit\n");
}

/* There is room for one pane besides the findings: that with the focus. */
static void the_main_view_on_a_small_terminal(void **state)
{
	struct screen_play *play = *state;

	screen_play_knock_twice(play);
	screen_model_resize(play->model, 40, 10);
	assert_string_equal(screen_play_look(play),
			    "watch pid 4101  LIVE 4 calls, 1 finding\n"
			    "FINDINGS 1 (and 1 of info)\n"
			    "H dup_after_timeout POST :8080/v1/charg>\n"
			    "CALLS 4\n"
			    "  METH  ST     MS TARGET\n"
			    "H POST 200    3.0 :8080/v1/charges\n"
			    "  POST 503    5.0 :8080/v1/refunds?key=>\n"
			    "  GET  200    1.0 :8080/v1/charges\n"
			    "not seen: holes 0  blind streams 0  bro>\n"
			    "? help  Tab pane  Enter open  q quit\n");
	screen_play_key(play, SCREEN_KEY_TAB);
	assert_string_equal(screen_play_look(play),
			    "watch pid 4101  LIVE 4 calls, 1 finding\n"
			    "FINDINGS 1 (and 1 of info)\n"
			    "H dup_after_timeout POST :8080/v1/charg>\n"
			    "PROCESSES AND PATHS 3, by duplicates\n"
			    "CALLS DUPS LAST PATH\n"
			    "    2    1  200 :8080/v1/charges\n"
			    "    1    0  503 :8080/v1/refunds\n"
			    "    1    0  200 :8080/v1/charges\n"
			    "not seen: holes 0  blind streams 0  bro>\n"
			    "? help  Tab pane  Enter open  q quit\n");
}

static void the_main_view_on_a_wide_terminal(void **state)
{
	struct screen_play *play = *state;

	screen_play_knock_twice(play);
	screen_model_resize(play->model, 300, 12);
	assert_string_equal(screen_play_look(play),
			    "nightclerk watch pid 4101  LIVE                                                                                                                                                                                                                      4 calls, 3 mutating, 2 answered, 1 high 0 medium 0 low\n"
			    "FINDINGS 1 (and 1 of info): f and Enter show both attempts side by side\n"
			    "HIGH        dup_after_timeout               2 of 2 14:13:20.100    4101 agent           POST :8080/v1/charges\n"
			    "CALLS 4\n"
			    "TIME (UTC)       PID COMMAND         METHOD   ST   SENT    GOT        MS FINDING                      SERVER AND TARGET\n"
			    "14:13:20.000    4101 agent           POST    200     13      2      80.0 (sent again later)           127.0.0.1:8080 /v1/charges\n"
			    "14:13:20.100    4101 agent           POST    200     13      2       3.0 dup_after_timeout            127.0.0.1:8080 /v1/charges\n"
			    "14:13:20.113    4202 agent           POST    503      2      0       5.0                              127.0.0.1:8080 /v1/refunds?key=~b90aea9c72c00f89&n=1\n"
			    "14:13:20.128    4202 agent           GET     200      0      2       1.0                              127.0.0.1:8080 /v1/charges\n"
			    "\n"
			    "not seen: holes 0  blind streams 0  broken 0  lost 0\n"
			    "? help  f findings  Enter open  Tab pane  / filter  s sort  p pause  q quit\n");
}

static void both_attempts_side_by_side(void **state)
{
	struct screen_play *play = *state;

	screen_play_knock_twice(play);
	screen_model_resize(play->model, 80, 54);
	screen_play_key(play, 'f');
	screen_play_key(play, SCREEN_KEY_ENTER);
	assert_string_equal(screen_play_look(play),
			    "watch pid 4101  LIVE                             4 calls, 1 high 0 medium 0 low\n"
			    "HIGH dup_after_timeout: POST /v1/charges at 127.0.0.1:8080, attempt 2 of 2\n"
			    "evidence       second identical POST after the client gave up on the earlier\n"
			    "               one, which was answered 200 all the same, no Idempotency-Key\n"
			    "rule           the earlier attempt got a late 2xx\n"
			    "next           send one Idempotency-Key on both attempts, or ask the server\n"
			    "               what became of the earlier one before sending again\n"
			    "\n"
			    "= #            ATTEMPT 1                        ATTEMPT 2\n"
			    "time           14:13:20.000 UTC                 14:13:20.100 UTC\n"
			    "outcome        client gave up after 50 ms; the  200 after 3 ms\n"
			    "               server answered 200 at 80 ms,\n"
			    "               to nobody\n"
			    "process      = pid 4101 agent                   pid 4101 agent\n"
			    "answer         200, 2 bytes of body, whole      200, 2 bytes of body, whole\n"
			    "               (length)\n"
			    "client read    0 of 40 bytes, head included     not known\n"
			    "\n"
			    "WHAT HAPPENED WHEN\n"
			    "       0.0 ms  request begins\n"
			    "       0.0 ms  request sent whole\n"
			    "      50.0 ms  client closed\n"
			    "      80.0 ms  server sends 200\n"
			    "      80.0 ms  answer whole\n"
			    "     100.0 ms                                   request begins\n"
			    "     100.0 ms                                   request sent whole\n"
			    "     103.0 ms                                   server sends 200\n"
			    "     103.0 ms                                   answer whole\n"
			    "\n"
			    "WHAT WAS SENT\n"
			    "request      = POST /v1/charges                 POST /v1/charges\n"
			    "host         = 127.0.0.1:8080                   127.0.0.1:8080\n"
			    "key          = none                             none\n"
			    "content type = application/json                 application/json\n"
			    "user agent   = agent/1                          agent/1\n"
			    "fields       = Host, User-Agent,                Host, User-Agent,\n"
			    "               Authorization, Content-Type,     Authorization, Content-Type,\n"
			    "               Content-Length                   Content-Length\n"
			    "class        = mutating                         mutating\n"
			    "body         = 13 bytes                         13 bytes\n"
			    "sha          = 7e84cbf0f7a7c92c037058665d66152f 7e84cbf0f7a7c92c037058665d66152f\n"
			    "               8eb8580ab2534e52c877bccceb9cc7bf 8eb8580ab2534e52c877bccceb9cc7bf\n"
			    "sha as sent  = ba0045583c6e765a5ba6d529a963e2fd ba0045583c6e765a5ba6d529a963e2fd\n"
			    "               a41f894a79277f5f94b51f8184a3936a a41f894a79277f5f94b51f8184a3936a\n"
			    "fingerprint  = e5727d725c4a8e7dafded7aec5ee0a1d e5727d725c4a8e7dafded7aec5ee0a1d\n"
			    "               6a7da5fbb0e8c710453a16bad5932284 6a7da5fbb0e8c710453a16bad5932284\n"
			    "connection     127.0.0.1:40000 to               127.0.0.1:40001 to\n"
			    "               127.0.0.1:8080                   127.0.0.1:8080\n"
			    "server       = pid 4712 server                  pid 4712 server\n"
			    "id             9d63c51d6c28e6a0ca8f464881f1e9da 2ae2bf0e5ad1e36f1f6bc49673689d22\n"
			    "\n"
			    "\n"
			    "not seen: holes 0  blind streams 0  broken 0  lost 0\n"
			    "Esc back  up/down scroll  w write  ? help\n");
}

static void both_attempts_below_each_other(void **state)
{
	struct screen_play *play = *state;

	screen_play_knock_twice(play);
	screen_model_resize(play->model, 40, 12);
	screen_play_key(play, 'f');
	screen_play_key(play, SCREEN_KEY_ENTER);
	screen_play_look(play);
	screen_play_key(play, SCREEN_KEY_PAGE_DOWN);
	assert_string_equal(screen_play_look(play),
			    "watch pid 4101  LIVE 4 calls, 1 finding\n"
			    "rule\n"
			    "    the earlier attempt got a late 2xx\n"
			    "next\n"
			    "    send one Idempotency-Key on both\n"
			    "    attempts, or ask the server what\n"
			    "    became of the earlier one before\n"
			    "    sending again\n"
			    "\n"
			    "1 the earlier attempt, 2 this one\n"
			    "not seen: holes 0  blind streams 0  bro>\n"
			    "Esc back  up/down scroll  ? help\n");
}

static void paused_sorted_and_filtered(void **state)
{
	struct screen_play *play = *state;

	screen_play_knock_twice(play);
	screen_model_resize(play->model, 80, 12);
	screen_play_key(play, 'p');
	screen_play_knock_twice(play);
	screen_play_key(play, 's');
	screen_play_key(play, '/');
	screen_play_type(play, "post !refunds");
	assert_string_equal(screen_play_look(play),
			    "watch pid 4101  LIVE                             8 calls, 3 high 0 medium 1 low\n"
			    "FINDINGS 1 (and 2 of info): f and Enter show both attempts side by side\n"
			    "HIGH        dup_after_timeout          4 of 4 POST :8080/v1/charges\n"
			    "CALLS 2 of 8, by slowest, PAUSED: 4 more since, filter: post !refunds\n"
			    "  TIME         PID COMMAND    METHOD  ST   GOT      MS TARGET\n"
			    "+ 14:13:20    4101 agent      POST   200     2    80.0 :8080/v1/charges\n"
			    "H 14:13:20    4101 agent      POST   200     2     3.0 :8080/v1/charges\n"
			    "\n"
			    "\n"
			    "\n"
			    "not seen: holes 0  blind streams 0  broken 0  lost 0\n"
			    "filter: post !refunds\n");
	assert_int_equal(play->frame.cursor_row, 11);
	assert_int_equal(play->frame.cursor_column, 21);
}

static void the_help_begins_with_what_one_comes_for(void **state)
{
	struct screen_play *play = *state;

	screen_model_resize(play->model, 80, 12);
	screen_play_key(play, '?');
	assert_string_equal(screen_play_look(play),
			    "watch pid 4101  LIVE                             0 calls, 0 high 0 medium 0 low\n"
			    "TO SEE BOTH ATTEMPTS BEHIND A DUPLICATE\n"
			    "f             go to the findings at the top: one line for each duplicate, worst\n"
			    "              first\n"
			    "up, down      choose one\n"
			    "Enter         both attempts side by side: who, when, what was sent and read; Esc\n"
			    "              comes back\n"
			    "Enter on a call does the same. Letters before calls: H M L ? i, the finding is\n"
			    "high, medium, low, undecidable, info; +, it was sent again later.\n"
			    "\n"
			    "not seen: holes 0  blind streams 0  broken 0  lost 0\n"
			    "Esc back  up/down scroll\n");
}

static void a_file_has_all_of_it(void **state)
{
	struct screen_play *play = *state;
	struct buffer text = {0};

	screen_play_knock_twice(play);
	screen_model_resize(play->model, 40, 10);
	screen_play_key(play, 's');
	assert_int_equal(screen_text(play->model, 1, &text), 0);
	assert_int_equal(buffer_append_byte(&text, '\0'), 0);
	assert_string_equal((const char *)text.data,
			    "FINDINGS 1 (and 1 of info)\n"
			    "SEVERITY    FINDING                        ATTEMPT TIME (UTC)       PID COMMAND         CALL\n"
			    "HIGH        dup_after_timeout               2 of 2 14:13:20.100    4101 agent           POST :8080/v1/charges\n"
			    "\n"
			    "CALLS 4, by slowest\n"
			    "TIME (UTC)       PID COMMAND         METHOD   ST   SENT    GOT        MS FINDING                      SERVER AND TARGET\n"
			    "14:13:20.000    4101 agent           POST    200     13      2      80.0 (sent again later)           127.0.0.1:8080 /v1/charges\n"
			    "14:13:20.113    4202 agent           POST    503      2      0       5.0                              127.0.0.1:8080 /v1/refunds?key=~b90aea9c72c00f89&n=1\n"
			    "14:13:20.100    4101 agent           POST    200     13      2       3.0 dup_after_timeout            127.0.0.1:8080 /v1/charges\n"
			    "14:13:20.128    4202 agent           GET     200      0      2       1.0                              127.0.0.1:8080 /v1/charges\n"
			    "\n"
			    "PROCESSES AND PATHS 3, by duplicates\n"
			    "    PID COMMAND     CALLS   MUT ATTEMPTS  DUPS LAST TOKENS PATH\n"
			    "   4101 agent           2     2        1     1  200      0 :8080/v1/charges\n"
			    "   4202 agent           1     1        0     0  503      0 :8080/v1/refunds\n"
			    "   4202 agent           1     0        0     0  200      0 :8080/v1/charges\n"
			    "\n");
	buffer_done(&text);
}

static void what_others_send_cannot_move_the_cursor(void **state)
{
	struct screen_play *play = *state;
	struct scene *scene = &play->scene;
	uint32_t c;

	screen_model_resize(play->model, 80, 14);
	play->model->has_output = true;
	scene->client_comm = "ev\x1b[31mil";
	c = scene_connect(scene, 7);
	screen_play_ask(play, c, "GET /%1b?\xff\xc2\x9b\xe2\x80\xae HTTP/1.1\r\nHost: \x1b]0;x\x07\r\n\r\n", 1, SCREEN_PLAY_OK);
	screen_play_ask(play, c, "PO-ST /\xff\xc2\x9b\xe2\x80\xae\xe6\xbc\xa2 HTTP/1.1\r\nHost: \x1b]0;x\x07\r\n\r\n", 1,
			SCREEN_PLAY_OK);
	c = scene_connect(scene, 7);
	scene_lose(scene, c, WIRE_BUILD_CLIENT, 100);
	scene_end_of(scene, c, WIRE_BUILD_CLIENT);
	scene_end_of(scene, c, WIRE_BUILD_SERVER);
	c = scene_connect(scene, 7);
	scene_send(scene, c, WIRE_BUILD_CLIENT, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03");
	screen_model_ring(play->model, 10, 30, 1000);
	screen_model_mark(play->model, BYTES("a\x1b[2J"));
	screen_model_output(play->model, BYTES("\x1b[31mred\x07\n"));
	screen_model_say(play->model, "nightclerk: \x1b[2J");
	assert_string_equal(screen_play_look(play),
			    "watch pid 4101  LIVE                             2 calls, 0 high 0 medium 0 low\n"
			    "FINDINGS none\n"
			    "CALLS 2\n"
			    "  TIME         PID COMMAND    METHOD  ST   GOT      MS TARGET\n"
			    "  14:13:20       7 ev\\x1b[31> GET    200     2     1.0 :8080/%1b?\\xff\\xc2\\x9b\\x>\n"
			    "  14:13:20       7 ev\\x1b[31> PO-ST  200     2     1.0 :8080/\\xff\\xc2\\x9b\\xe2\\x>\n"
			    "\n"
			    "\n"
			    "\n"
			    "\n"
			    "\n"
			    "\n"
			    "not seen: holes 1 (100 bytes)  blind streams 1 (1 tls)  broken 1  lost 0  ring >\n"
			    "nightclerk: \\x1b[2J\n");
	screen_play_key(play, SCREEN_KEY_BACK_TAB);
	screen_play_key(play, SCREEN_KEY_BACK_TAB);
	assert_string_equal(screen_play_look(play),
			    "watch pid 4101  LIVE                             2 calls, 0 high 0 medium 0 low\n"
			    "FINDINGS none\n"
			    "OUTPUT OF THE COMMAND 1 line\n"
			    "\\x1b[31mred\\x07\n"
			    "\n"
			    "\n"
			    "\n"
			    "\n"
			    "\n"
			    "\n"
			    "\n"
			    "\n"
			    "not seen: holes 1 (100 bytes)  blind streams 1 (1 tls)  broken 1  lost 0  ring >\n"
			    "? help  f findings  Enter open  Tab pane  / filter  s sort  p pause  q quit\n");
}

/* Whatever is shown of a call, in every page and in the file: no value of a secret field. */
static void no_secret_is_shown(void **state)
{
	struct screen_play *play = *state;
	struct buffer text = {0};

	screen_play_knock_twice(play);
	screen_model_resize(play->model, 300, 80);
	for (int page = 0; page < 2; page++) {
		assert_null(strstr(screen_play_look(play), "s3cret"));
		assert_null(strstr(screen_play_look(play), "key=abc"));
		assert_int_equal(screen_text(play->model, 1, &text), 0);
		screen_play_key(play, 'k');
		screen_play_key(play, SCREEN_KEY_ENTER); /* the refund, with its query */
	}
	assert_non_null(strstr(screen_play_look(play), "/v1/refunds?key=~b90aea9c72c00f89&n=1"));
	assert_int_equal(buffer_append_byte(&text, '\0'), 0);
	assert_null(strstr((const char *)text.data, "s3cret"));
	assert_null(strstr((const char *)text.data, "key=abc"));
	buffer_done(&text);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing_has_happened_yet),
		TEST(the_main_view),
		TEST(the_main_view_on_a_small_terminal),
		TEST(the_main_view_on_a_wide_terminal),
		TEST(both_attempts_side_by_side),
		TEST(both_attempts_below_each_other),
		TEST(paused_sorted_and_filtered),
		TEST(the_help_begins_with_what_one_comes_for),
		TEST(a_file_has_all_of_it),
		TEST(what_others_send_cannot_move_the_cursor),
		TEST(no_secret_is_shown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
