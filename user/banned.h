/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions that this tree does not use, as compile errors. Included before
 * every file by the makefile.
 */
#ifndef NIGHTCLERK_BANNED_H
#define NIGHTCLERK_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#pragma GCC poison strcpy strcat strncpy strncat strtok sprintf vsprintf gets atoi atol atof
#pragma GCC poison gmtime localtime ctime asctime popen system

#endif
