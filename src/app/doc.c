/* doc.c: small verbs for documents. Jansson's *_set_new calls take the reference even when they
 * fail, so nothing leaks; a value that could not be stored leaves the mark "incomplete". */
#include "app/verb.h"

#include <math.h>

void cgam_put(json_t *object, const char *name, json_t *value)
{
    if (json_object_set_new(object, name, value) != 0)
        json_object_set_new(object, "incomplete", json_true());
}

void cgam_put_int(json_t *object, const char *name, int64_t value)
{
    cgam_put(object, name, json_integer(value));
}

void cgam_put_real(json_t *object, const char *name, double value)
{
    cgam_put(object, name, cgam_json_real(value));
}

void cgam_put_text(json_t *object, const char *name, const char *value)
{
    cgam_put(object, name, value ? json_string(value) : json_null());
}

void cgam_put_bool(json_t *object, const char *name, bool value)
{
    cgam_put(object, name, json_boolean(value));
}

json_t *cgam_reals_json(const double *values, int64_t n)
{
    json_t *array = json_array();
    for (int64_t i = 0; i < n; i++)
        if (json_array_append_new(array, cgam_json_real(values[i])) != 0) {
            json_decref(array);
            return NULL;
        }
    return array;
}

double cgam_get_real(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

int64_t cgam_get_int(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

const char *cgam_get_text(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}
