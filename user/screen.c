/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ncurses starts on the real terminal, and its output descriptor is then
 * pointed at a file in memory: it writes without ever being kept waiting, and
 * what it wrote goes to the terminal from here, as much as that takes at a time.
 *
 * The terminal is given back by bytes and modes that were made ready at the
 * start, with nothing but write() and tcsetattr(): a signal handler may do
 * that. This is why there is a static here.
 */
#include "screen.h"
#include "screen_model.h"
#include "utf8.h"

#include <curses.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <term.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

#undef columns /* term.h takes these names for itself */
#undef lines

#define ESCAPE_MS 20	 /* how long a lone ESC may be the start of a key */
#define LAST_WORDS_MS 500 /* how long a terminal may take for its last bytes */
#define MESSAGE_MAX 512
#define SEQUENCES_MAX 256

struct screen {
	SCREEN *curses;
	WINDOW *keys; /* reads them; never drawn */
	FILE *out, *in;
	int memory_fd;		/* where out goes to */
	struct buffer waiting;	/* for the terminal */
	size_t sent;		/* of it */
	bool colour;
	bool spoiled;
	off_t messages_seen;
	char message[MESSAGE_MAX];
};

/* What a dying process needs to give the terminal back. */
static struct {
	volatile sig_atomic_t taken;
	int tty_fd;
	int messages_fd; /* what came on standard error; -1 = that was left alone */
	int stderr_fd;	 /* what standard error was */
	struct termios modes;
	char sequences[SEQUENCES_MAX];
	size_t sequences_size;
} terminal = {.tty_fd = -1, .messages_fd = -1, .stderr_fd = -1};

static const int crashes[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGTRAP, SIGSYS};

/* ---- giving it back ---- */

static void write_patiently(int fd, const char *text, size_t size)
{
	struct pollfd ready = {.fd = fd, .events = POLLOUT};

	while (size) {
		ssize_t n = write(fd, text, size);

		if (n > 0) {
			text += n;
			size -= (size_t)n;
		} else if (n < 0 && errno == EINTR) {
			continue;
		} else if (n == 0 || errno != EAGAIN || poll(&ready, 1, LAST_WORDS_MS) <= 0) {
			return;
		}
	}
}

static void print_messages(void)
{
	char text[1024];
	off_t offset = 0;
	ssize_t n;

	dup2(terminal.stderr_fd, STDERR_FILENO);
	while ((n = pread(terminal.messages_fd, text, sizeof(text), offset)) > 0) {
		write_patiently(STDERR_FILENO, text, (size_t)n);
		offset += n;
	}
}

/* Async-signal-safe, and does its work once. */
static void give_back(void)
{
	if (!terminal.taken)
		return;
	terminal.taken = 0;
	write_patiently(terminal.tty_fd, terminal.sequences, terminal.sequences_size);
	tcsetattr(terminal.tty_fd, TCSANOW, &terminal.modes);
	if (terminal.messages_fd >= 0)
		print_messages();
}

static void on_crash(int signal_number)
{
	give_back();
	raise(signal_number); /* its handler is gone: SA_RESETHAND */
}

static void catch_crashes(void)
{
	static char stack[64 * 1024];
	stack_t alternate = {.ss_sp = stack, .ss_size = sizeof(stack)};
	struct sigaction action = {.sa_handler = on_crash, .sa_flags = (int)(SA_RESETHAND | SA_NODEFER | SA_ONSTACK)};
	struct sigaction before;

	sigaltstack(&alternate, NULL);
	for (size_t i = 0; i < sizeof(crashes) / sizeof(crashes[0]); i++)
		if (sigaction(crashes[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
			sigaction(crashes[i], &action, NULL);
}

/* ---- taking it over ---- */

static int add_byte(int byte)
{
	if (terminal.sequences_size < sizeof(terminal.sequences))
		terminal.sequences[terminal.sequences_size++] = (char)byte;
	return byte;
}

static void add_sequence(const char *name)
{
	const char *text = tigetstr(name);

	if (text && text != (char *)-1)
		tputs(text, 1, add_byte);
}

/* CAN ends a sequence that was cut in its middle (ECMA-48 section 8.3.6 and the terminals of today). */
static void make_sequences(void)
{
	terminal.sequences_size = 0;
	add_byte(0x18);
	add_sequence("sgr0");
	add_sequence("op");
	add_sequence("rmkx");
	add_sequence("cnorm");
	add_sequence("rmcup");
	add_byte('\r');
	del_curterm(cur_term); /* what setupterm() found: ncurses makes its own */
}

/* A description of its own: O_NONBLOCK would else be everybody's who writes to this terminal. */
static int open_tty(void)
{
	static const int flags = O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK;
	int fd;

	if (!isatty(STDOUT_FILENO))
		return -ENOTTY;
	fd = open("/proc/self/fd/1", flags);
	if (fd < 0)
		fd = open("/dev/tty", flags);
	return fd < 0 ? -errno : fd;
}

/* The reason why a full screen cannot be had on this terminal; NULL = it can. */
static const char *find_fault(void)
{
	const char *name = getenv("TERM"), *move;
	int err = 0;

	if (!name || !*name)
		return "TERM is not set";
	if (strcmp(name, "dumb") == 0)
		return "TERM is dumb";
	if (setupterm(name, terminal.tty_fd, &err) != OK)
		return err == 0 ? "TERM names a terminal that terminfo does not know (package ncurses-term has more)" :
				  "there is no terminfo database";
	move = tigetstr("cup");
	return move && move != (char *)-1 ? NULL : "the terminal cannot move its cursor";
}

int screen_new(struct screen **ret_screen, const char **ret_reason)
{
	struct screen *screen;

	setlocale(LC_CTYPE, "");
	terminal.tty_fd = open_tty();
	*ret_reason = terminal.tty_fd == -ENOTTY ? "standard output is no terminal" :
		      terminal.tty_fd < 0	 ? "the terminal cannot be opened" :
						   find_fault();
	screen = *ret_reason ? NULL : calloc(1, sizeof(*screen));
	if (!screen) {
		if (terminal.tty_fd >= 0)
			close(terminal.tty_fd);
		terminal.tty_fd = -1;
		*ret_reason = *ret_reason ? *ret_reason : "out of memory";
		return -ENOTTY;
	}
	screen->memory_fd = -1;
	*ret_screen = screen;
	return 0;
}

/* Warnings of ours would tear the picture: they wait, and the last one is shown. */
static void divert_messages(void)
{
	if (!isatty(STDERR_FILENO))
		return;
	terminal.messages_fd = memfd_create("nightclerk-messages", MFD_CLOEXEC);
	terminal.stderr_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	if (terminal.messages_fd < 0 || terminal.stderr_fd < 0)
		return;
	fcntl(terminal.messages_fd, F_SETFL, O_APPEND);
	dup2(terminal.messages_fd, STDERR_FILENO);
}

/* No colours where none are wanted (no-color.org) or known. */
static bool start_colours(void)
{
	const char *unwanted = getenv("NO_COLOR");

	if ((unwanted && *unwanted) || !has_colors() || start_color() != OK)
		return false;
	use_default_colors();
	init_pair(STYLE_HIGH, COLOR_RED, -1);
	init_pair(STYLE_MEDIUM, COLOR_YELLOW, -1);
	init_pair(STYLE_LOW, COLOR_CYAN, -1);
	init_pair(STYLE_UNDECIDABLE, COLOR_MAGENTA, -1);
	return true;
}

/* Ctrl-Z would stop the collector and lose calls: it is a key like any other. Ctrl-C stays what it is. */
static void set_modes(void)
{
	struct termios modes;

	cbreak();
	noecho();
	nonl();
	if (tcgetattr(terminal.tty_fd, &modes))
		return;
	modes.c_cc[VSUSP] = _POSIX_VDISABLE;
	modes.c_iflag &= (tcflag_t)~(IXON | IXOFF);
	tcsetattr(terminal.tty_fd, TCSANOW, &modes);
}

static int start_curses(struct screen *screen)
{
	int out = fcntl(terminal.tty_fd, F_DUPFD_CLOEXEC, 3), in = fcntl(terminal.tty_fd, F_DUPFD_CLOEXEC, 3);

	screen->out = out < 0 ? NULL : fdopen(out, "w");
	screen->in = in < 0 ? NULL : fdopen(in, "r");
	screen->memory_fd = memfd_create("nightclerk-screen", MFD_CLOEXEC);
	if (!screen->out || !screen->in || screen->memory_fd < 0)
		return -errno;
	terminal.taken = 1;
	screen->curses = newterm(NULL, screen->out, screen->in);
	if (!screen->curses)
		return -ENOTTY;
	set_modes();
	screen->colour = start_colours();
	/* What ncurses has sent so far went to the terminal; from here on nothing does. */
	dup2(screen->memory_fd, fileno(screen->out));
	typeahead(-1);
	set_escdelay(ESCAPE_MS);
	screen->keys = newpad(1, 1);
	if (!screen->keys)
		return -ENOMEM;
	keypad(screen->keys, TRUE);
	nodelay(screen->keys, TRUE);
	screen_resized(screen);
	return 0;
}

int screen_show(struct screen *screen)
{
	int err;

	if (tcgetattr(terminal.tty_fd, &terminal.modes))
		return -errno;
	make_sequences();
	signal(SIGTSTP, SIG_IGN);
	catch_crashes();
	atexit(give_back);
	err = start_curses(screen);
	if (err) {
		give_back();
		return err;
	}
	divert_messages();
	return 0;
}

void screen_close(struct screen *screen)
{
	if (!screen)
		return;
	if (terminal.taken && !screen_gone(screen))
		screen_ready(screen);
	give_back();
	if (screen->keys)
		delwin(screen->keys);
	if (screen->curses)
		delscreen(screen->curses);
	if (screen->out)
		fclose(screen->out);
	if (screen->in)
		fclose(screen->in);
	if (screen->memory_fd >= 0)
		close(screen->memory_fd);
	if (terminal.tty_fd >= 0)
		close(terminal.tty_fd);
	terminal.tty_fd = -1;
	buffer_done(&screen->waiting);
	free(screen);
}

/* ---- sending ---- */

static bool has_sent(struct screen *screen)
{
	if (screen->sent < screen->waiting.size)
		return false;
	screen->sent = 0;
	buffer_clear(&screen->waiting);
	return true;
}

bool screen_ready(struct screen *screen)
{
	while (!has_sent(screen)) {
		ssize_t n = write(terminal.tty_fd, screen->waiting.data + screen->sent, screen->waiting.size - screen->sent);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return false;
		if (n <= 0) { /* it is gone: nobody will ever see this */
			buffer_clear(&screen->waiting);
			screen->sent = 0;
			return true;
		}
		screen->sent += (size_t)n;
	}
	return true;
}

/* What ncurses wrote into memory waits for the terminal. */
static void collect(struct screen *screen)
{
	off_t size = lseek(fileno(screen->out), 0, SEEK_CUR);

	if (size > 0 && buffer_reserve(&screen->waiting, (size_t)size) == 0) {
		ssize_t n = pread(screen->memory_fd, screen->waiting.data + screen->waiting.size, (size_t)size, 0);

		screen->waiting.size += n > 0 ? (size_t)n : 0;
	} else if (size > 0) {
		screen->spoiled = true; /* no memory: all of it again next time */
	}
	if (ftruncate(screen->memory_fd, 0) == 0)
		lseek(fileno(screen->out), 0, SEEK_SET);
}

void screen_bell(struct screen *screen)
{
	buffer_append_byte(&screen->waiting, '\a');
}

void screen_spoiled(struct screen *screen)
{
	screen->spoiled = true;
}

/* ---- painting ---- */

static attr_t attributes_of(const struct screen *screen, unsigned int style)
{
	unsigned int colour = style & 0xf;
	attr_t attributes = A_NORMAL;

	if (screen->colour && colour)
		attributes |= (attr_t)COLOR_PAIR(colour);
	if ((style & STYLE_BOLD) || (!screen->colour && colour))
		attributes |= A_BOLD;
	if (style & STYLE_DIM)
		attributes |= A_DIM;
	if (style & STYLE_REVERSE)
		attributes |= A_REVERSE;
	return attributes;
}

/* A character that this locale has, or "?"; its columns. */
static int fit_character(wchar_t *c)
{
	char bytes[MB_LEN_MAX];
	mbstate_t state = {0};
	int columns = wcwidth(*c);

	if (columns >= 0 && wcrtomb(bytes, *c, &state) != (size_t)-1)
		return columns;
	*c = L'?';
	return 1;
}

/* Combining characters take no column but do take room here. */
#define CELL_CHARACTERS 1024

static void paint_cell(const struct screen *screen, struct bytes text, const struct screen_cell *cell)
{
	wchar_t line[CELL_CHARACTERS + 1];
	unsigned int used = 0;
	size_t count = 0;
	bool cut = false;

	while (text.size && count < CELL_CHARACTERS - 1 && !cut) {
		uint32_t code_point = '?';
		size_t n = utf8_next(text, &code_point);
		wchar_t c = (wchar_t)code_point;
		int columns = fit_character(&c);

		cut = used + (unsigned int)columns > cell->width;
		if (cut)
			break;
		bytes_take(&text, n ? n : 1);
		line[count++] = c;
		used += (unsigned int)columns;
	}
	while (used < cell->width && count < CELL_CHARACTERS) {
		line[count++] = L' ';
		used++;
	}
	attrset((int)attributes_of(screen, cell->style));
	mvaddnwstr((int)cell->row, (int)cell->column, line, (int)count);
	if (cut)
		mvaddnwstr((int)cell->row, (int)(cell->column + cell->width - 1), L">", 1);
}

void screen_paint(struct screen *screen, const struct screen_frame *frame)
{
	attrset(A_NORMAL);
	erase();
	for (size_t i = 0; i < frame->count; i++) {
		const struct screen_cell *cell = &frame->cell[i];

		paint_cell(screen, (struct bytes){frame->text.data ? frame->text.data + cell->offset : NULL, cell->size}, cell);
	}
	curs_set(frame->cursor_row >= 0);
	move(frame->cursor_row >= 0 ? frame->cursor_row : 0, frame->cursor_row >= 0 ? frame->cursor_column : 0);
	if (screen->spoiled)
		clearok(curscr, TRUE);
	screen->spoiled = false;
	wnoutrefresh(stdscr);
	doupdate();
	collect(screen);
	screen_ready(screen);
}

/* ---- size, keys, messages ---- */

void screen_size(const struct screen *screen, unsigned int *ret_columns, unsigned int *ret_rows)
{
	(void)screen;
	*ret_columns = (unsigned int)COLS;
	*ret_rows = (unsigned int)LINES;
}

void screen_resized(struct screen *screen)
{
	struct winsize size;

	if (ioctl(terminal.tty_fd, TIOCGWINSZ, &size) || size.ws_row == 0 || size.ws_col == 0)
		return;
	resizeterm(size.ws_row, size.ws_col);
	screen->spoiled = true;
}

static uint32_t key_of_code(wint_t code)
{
	static const struct {
		wint_t code;
		uint32_t key;
	} codes[] = {
		{KEY_UP, SCREEN_KEY_UP},	 {KEY_DOWN, SCREEN_KEY_DOWN},	{KEY_PPAGE, SCREEN_KEY_PAGE_UP},
		{KEY_NPAGE, SCREEN_KEY_PAGE_DOWN}, {KEY_HOME, SCREEN_KEY_HOME},	{KEY_END, SCREEN_KEY_END},
		{KEY_LEFT, SCREEN_KEY_LEFT},	 {KEY_RIGHT, SCREEN_KEY_RIGHT},	{KEY_ENTER, SCREEN_KEY_ENTER},
		{KEY_BTAB, SCREEN_KEY_BACK_TAB}, {KEY_BACKSPACE, SCREEN_KEY_BACKSPACE}, {KEY_DC, SCREEN_KEY_BACKSPACE},
	};

	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (codes[i].code == code)
			return codes[i].key;
	return 0;
}

static uint32_t key_of_character(wint_t c)
{
	switch (c) {
	case '\r':
	case '\n':
		return SCREEN_KEY_ENTER;
	case '\t':
		return SCREEN_KEY_TAB;
	case 0x1b:
		return SCREEN_KEY_ESCAPE;
	case 0x7f:
	case '\b':
		return SCREEN_KEY_BACKSPACE;
	default:
		return (uint32_t)c;
	}
}

int screen_fd(const struct screen *screen)
{
	(void)screen;
	return terminal.tty_fd;
}

bool screen_key(struct screen *screen, uint32_t *ret_key)
{
	wint_t c;
	int result;

	while ((result = wget_wch(screen->keys, &c)) != ERR) {
		*ret_key = result == KEY_CODE_YES ? key_of_code(c) : key_of_character(c);
		if (*ret_key)
			return true;
	}
	return false;
}

bool screen_gone(const struct screen *screen)
{
	struct pollfd tty = {.fd = terminal.tty_fd};

	(void)screen;
	return poll(&tty, 1, 0) > 0 && (tty.revents & (POLLHUP | POLLERR | POLLNVAL));
}

struct bytes screen_messages(struct screen *screen)
{
	off_t size = terminal.messages_fd < 0 ? 0 : lseek(terminal.messages_fd, 0, SEEK_END);
	off_t from = size - screen->messages_seen > MESSAGE_MAX ? size - MESSAGE_MAX : screen->messages_seen;
	ssize_t n = size > from ? pread(terminal.messages_fd, screen->message, (size_t)(size - from), from) : 0;
	char *start;

	if (n <= 0 || screen->message[n - 1] != '\n')
		return (struct bytes){0};
	screen->messages_seen = size;
	screen->message[--n] = '\0';
	start = strrchr(screen->message, '\n');
	start = start ? start + 1 : screen->message;
	return bytes_of_string(start);
}
