/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The names of findings, severities, rows and columns: what the ledger, the
 * events, the options and the tests call them.
 */
#include "finding.h"

#include <errno.h>

static const char *const finding_names[FINDING_COUNT] = {
	[FINDING_NONE] = "none",
	[FINDING_UNDECIDABLE] = "undecidable",
	[FINDING_DUP_IN_FLIGHT] = "dup_in_flight",
	[FINDING_DUP_AFTER_TIMEOUT] = "dup_after_timeout",
	[FINDING_DUP_AFTER_NO_RESPONSE] = "dup_after_no_response",
	[FINDING_DUP_AFTER_TRUNCATED_SUCCESS] = "dup_after_truncated_success",
	[FINDING_DUP_AFTER_SUCCESS] = "dup_after_success",
	[FINDING_DUP_AFTER_GATEWAY_ERROR] = "dup_after_gateway_error",
	[FINDING_RETRY_WITHOUT_KEY] = "retry_without_key",
	[FINDING_SAFE_RETRY] = "safe_retry",
	[FINDING_RETRY_AFTER_SUCCESS] = "retry_after_success",
	[FINDING_RETRY_AFTER_REFUSAL] = "retry_after_refusal",
	[FINDING_RETRY_AFTER_UNLISTED_STATUS] = "retry_after_unlisted_status",
	[FINDING_KEY_REUSED_DIFFERENT_BODY] = "key_reused_different_body",
	[FINDING_KEY_CHANGED_ON_RETRY] = "key_changed_on_retry",
	[FINDING_LLM_BILLED_TWICE] = "llm_billed_twice",
	[FINDING_LLM_MAYBE_BILLED_TWICE] = "llm_maybe_billed_twice",
	[FINDING_LLM_REDISPATCHED_JOB] = "llm_redispatched_job",
	[FINDING_LLM_IDENTICAL_IN_FLIGHT] = "llm_identical_in_flight",
	[FINDING_LLM_REPEAT] = "llm_repeat",
	[FINDING_TRUNCATED_RESPONSE] = "truncated_response",
	[FINDING_ABANDONED_CALL] = "abandoned_call",
	[FINDING_OFF_LOOPBACK] = "off_loopback",
};

static const char *const severity_names[] = {
	[SEVERITY_NULL] = NULL,
	[SEVERITY_INFO] = "info",
	[SEVERITY_LOW] = "low",
	[SEVERITY_MEDIUM] = "medium",
	[SEVERITY_HIGH] = "high",
};

static const char *const row_names[ROW_COUNT] = {
	[ROW_UNDECIDABLE] = "undecidable",
	[ROW_REPLAYED] = "replayed",
	[ROW_OPEN] = "open",
	[ROW_CLIENT_GAVE_UP] = "client_gave_up",
	[ROW_SERVER_ENDED] = "server_ended",
	[ROW_NEVER_READ] = "never_read",
	[ROW_SUCCESS_CUT] = "success_cut",
	[ROW_SUCCESS] = "success",
	[ROW_CONFLICT] = "conflict",
	[ROW_OVERLOADED] = "overloaded",
	[ROW_SERVER_ERROR] = "server_error",
	[ROW_ASKED_AGAIN] = "asked_again",
	[ROW_REFUSED] = "refused",
};

static const char *const column_names[COLUMN_COUNT] = {
	[COLUMN_NO_KEY] = "no_key",
	[COLUMN_SAME_KEY_SAME_BODY] = "same_key_same_body",
	[COLUMN_SAME_KEY_OTHER_BODY] = "same_key_other_body",
	[COLUMN_NEW_KEY] = "new_key",
};

const char *finding_name(enum finding finding)
{
	return finding < FINDING_COUNT ? finding_names[finding] : NULL;
}

const char *severity_name(enum severity severity)
{
	return severity <= SEVERITY_HIGH ? severity_names[severity] : NULL;
}

int severity_parse(struct bytes text, enum severity *ret_severity)
{
	for (int i = SEVERITY_INFO; i <= SEVERITY_HIGH; i++)
		if (bytes_equal(text, bytes_of_string(severity_names[i]))) {
			*ret_severity = i;
			return 0;
		}
	return -EINVAL;
}

const char *finding_row_name(enum finding_row row)
{
	return row < ROW_COUNT ? row_names[row] : NULL;
}

const char *finding_column_name(enum finding_column column)
{
	return column < COLUMN_COUNT ? column_names[column] : NULL;
}
