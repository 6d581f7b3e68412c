/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What kind of call is it: mutating, read, llm, auth, telemetry.
 *
 * Ordered rules: policy file > protocol knowledge > tool names > path > method.
 */
#ifndef NIGHTCLERK_CLASSIFY_H
#define NIGHTCLERK_CLASSIFY_H

#include "call.h"

/*
 * Fills class, class_source, class_by, idempotent_hint, tool and model of a
 * call whose request is whole. Slices it sets point into the call's own memory.
 */
void classify_call(struct call *call);

#endif
