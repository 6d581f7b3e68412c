/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `replay FILE --screen`: a recording in the view of `watch`, stepping in time.
 */
#ifndef NIGHTCLERK_REPLAY_SCREEN_H
#define NIGHTCLERK_REPLAY_SCREEN_H

/*
 * policy_path may be NULL. The exit status: that of the whole recording, wherever one stopped
 * looking. -1: there is no terminal for it, which is said; nothing was read.
 */
int replay_screen(const char *path, const char *policy_path);

#endif
