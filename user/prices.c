/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * json-c keeps the object; a price is looked up in it.
 */
#include "prices.h"

#include <errno.h>
#include <json-c/json.h>
#include <math.h>

#define PRICES_DEPTH 3
#define MILLION 1e6

struct prices {
	json_object *object;
};

static bool is_price(json_object *value)
{
	double price = json_object_get_double(value);

	return (json_object_is_type(value, json_type_double) || json_object_is_type(value, json_type_int)) &&
	       isfinite(price) && price >= 0;
}

/* NULL, or what is wrong with the prices of a model. */
static const char *wrong_with(json_object *model)
{
	json_object *value;

	if (!json_object_is_type(model, json_type_object))
		return "is no object of prices";
	if (!json_object_object_get_ex(model, "input", &value) || !is_price(value))
		return "has no number as \"input\"";
	if (!json_object_object_get_ex(model, "output", &value) || !is_price(value))
		return "has no number as \"output\"";
	if (json_object_object_get_ex(model, "cached", &value) && !is_price(value))
		return "has no number as \"cached\"";
	json_object_object_foreach(model, name, unused) {
		(void)unused;
		if (strcmp(name, "input") && strcmp(name, "output") && strcmp(name, "cached"))
			return "has something beside input, cached and output";
	}
	return NULL;
}

static json_object *parse(struct bytes text)
{
	json_tokener *tokener = json_tokener_new_ex(PRICES_DEPTH);
	json_object *object = NULL;

	if (!tokener || text.size >= INT32_MAX)
		goto out;
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT);
	object = json_tokener_parse_ex(tokener, (const char *)text.data, (int)text.size);
	if (json_tokener_get_error(tokener) != json_tokener_success || !json_object_is_type(object, json_type_object)) {
		json_object_put(object);
		object = NULL;
	}
out:
	if (tokener)
		json_tokener_free(tokener);
	return object;
}

int prices_parse(struct bytes text, struct prices **ret_prices, char *reason)
{
	struct prices *prices = calloc(1, sizeof(*prices));

	if (!prices) {
		snprintf(reason, PRICES_REASON_MAX, "out of memory");
		return -ENOMEM;
	}
	prices->object = parse(text);
	if (!prices->object) {
		snprintf(reason, PRICES_REASON_MAX, "is not an object of models: {\"MODEL\": {\"input\": 2.5, \"output\": 10}}");
		prices_free(prices);
		return -EINVAL;
	}
	json_object_object_foreach(prices->object, name, model) {
		const char *wrong = wrong_with(model);

		if (!wrong)
			continue;
		snprintf(reason, PRICES_REASON_MAX, "%.128s %s: prices are numbers for a million tokens", name, wrong);
		prices_free(prices);
		return -EINVAL;
	}
	*ret_prices = prices;
	return 0;
}

void prices_free(struct prices *prices)
{
	if (!prices)
		return;
	json_object_put(prices->object);
	free(prices);
}

static double price(json_object *model, const char *name, const char *otherwise)
{
	json_object *value;

	if (!json_object_object_get_ex(model, name, &value))
		json_object_object_get_ex(model, otherwise, &value);
	return json_object_get_double(value);
}

static double known(int64_t tokens)
{
	return tokens > 0 ? (double)tokens : 0;
}

bool prices_cost(const struct prices *prices, const char *model, const struct store_tokens *tokens, double *ret_cost)
{
	double cached = known(tokens->cached), input = known(tokens->input) - cached;
	json_object *of;

	if (!prices || !model || !json_object_object_get_ex(prices->object, model, &of))
		return false;
	if (input < 0) /* input holds what was cached; where only that was reported */
		input = 0;
	*ret_cost = (input * price(of, "input", "input") + cached * price(of, "cached", "input") +
		     known(tokens->output) * price(of, "output", "output")) / MILLION;
	return true;
}
