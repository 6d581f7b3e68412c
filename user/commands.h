/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The subcommands: one function and one file each. argv[0] is the subcommand's
 * own name. What they return is the exit status (design: 125 for `run` when
 * nightclerk itself could not do its work; 0, 1, 2 elsewhere).
 */
#ifndef NIGHTCLERK_COMMANDS_H
#define NIGHTCLERK_COMMANDS_H

#define EXIT_USAGE 2
#define EXIT_DONE 3    /* reserve, get, once: it is done already */
#define EXIT_PENDING 4 /* somebody else is at it */
#define EXIT_ABSENT 5
#define EXIT_NOT_STARTED 125
#define EXIT_NOT_EXECUTABLE 126
#define EXIT_NOT_FOUND 127

int cmd_run(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_check_policy(int argc, char **argv);
int cmd_replay(int argc, char **argv);
int cmd_watch(int argc, char **argv);
int cmd_audit(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_mark(int argc, char **argv);
int cmd_sync(int argc, char **argv);
int cmd_key(int argc, char **argv);
int cmd_reserve(int argc, char **argv);
int cmd_commit(int argc, char **argv);
int cmd_get(int argc, char **argv);
int cmd_release(int argc, char **argv);
int cmd_once(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_sweep(int argc, char **argv);
int cmd_completion(int argc, char **argv);
int cmd_help(int argc, char **argv);

#endif
