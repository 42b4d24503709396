/* row_sums.c: sums of memories, by number or name, as a text. */
#include "app/row_sums.h"

#include "base/env.h"
#include "memory/bank.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The option for messages, and where names are looked up. */
typedef struct sums {
    const cgam_bank *bank;
    const char *option;
    cgam_row_names_of *names;
    void *user;
} sums;

/* Reads the memory at *text: its number or its name. A name that begins like a number or contains one of
 * +-*;' must be in quotes; '' inside quotes is one quote. */
static cgam_status find_row(const sums *s, const char **text, int64_t *row)
{
    enum { NAME_MAX = 1024 };
    cgam_env *env = s->bank->env;
    const char *at = *text, *option = s->option;
    char name[NAME_MAX], *end;
    size_t length = 0;
    int64_t n = cgam_bank_describe(s->bank).whole;
    bool quoted = *at == '\'', ended = false;
    errno = 0;
    if (*at >= '0' && *at <= '9') {
        *row = strtoll(at, &end, 10);
        *text = end;
        if (errno == 0 && *row < n) return CGAM_OK;
        return cgam_fail(env, CGAM_E_ARG, "%s: no memory %.*s (valid: 0 to %lld)", option,
                         (int)strspn(at, "0123456789"), at, (long long)n - 1);
    }
    for (at += quoted; *at && !ended && length + 1 < NAME_MAX;) {
        ended = quoted ? *at == '\'' && *++at != '\'' : strchr("+-*;'", *at) != NULL;
        if (!ended) name[length++] = *at++;
    }
    name[length] = 0;
    if (!ended && (quoted || *at))
        return cgam_fail(env, CGAM_E_ARG, "%s: the name at '%.20s' %s", option, *text,
                         *at ? "is too long" : "lacks its closing quote");
    if (length == 0)
        return cgam_fail(env, CGAM_E_ARG, "%s: expected a memory's number or name at '%.20s'",
                         option, *text);
    const cgam_row_names *names;
    cgam_status status = s->names(s->user, s->bank, &names);
    *row = status == CGAM_OK ? cgam_row_names_find(names, name) : -1;
    *text = at;
    return status != CGAM_OK || *row >= 0
               ? status
               : cgam_fail(env, CGAM_E_ARG, "%s: no memory named '%.100s'", option, name);
}

/* Adds the terms at *text up to ';' or the end to sum [d]; row [d] is scratch memory. */
static cgam_status add_rows(const sums *s, const char **text, double *row, double *sum)
{
    cgam_env *env = s->bank->env;
    const cgam_bank *bank = s->bank;
    int64_t d = cgam_bank_describe(bank).d, index;
    const char *at = *text, *option = s->option;
    do {
        double weight = *at == '-' ? -1 : 1;
        if (*at == '-' || *at == '+') at++;
        cgam_status status = find_row(s, &at, &index);
        if (status == CGAM_OK && *at == '*') {
            const char *factor = at + 1;
            char *end;
            weight *= strtod(factor, &end);
            if (end == factor || !isfinite(weight))
                return cgam_fail(env, CGAM_E_ARG, "%s: expected a number after '*' in '%.40s'",
                                 option, *text);
            at = end;
        }
        if (status == CGAM_OK && cgam_bank_place(bank, index) < 0)
            return cgam_fail(env, CGAM_E_ARG, "%s: memory %lld was dropped from the bank", option,
                             (long long)index);
        if (status == CGAM_OK) status = cgam_bank_row(bank, cgam_bank_place(bank, index), row);
        if (status != CGAM_OK) return status;
        bool finite = true;
        for (int64_t j = 0; j < d; j++) finite &= isfinite(sum[j] += weight * row[j]) != 0;
        if (!finite)
            return cgam_fail(env, CGAM_E_VALUE, "%s: the sum is not finite after memory %lld",
                             option, (long long)index);
    } while (*at == '+' || *at == '-');
    if (*at && *at != ';')
        return cgam_fail(env, CGAM_E_ARG, "%s: expected +, -, * or ; at '%.20s'", option, at);
    *text = at;
    return CGAM_OK;
}

int64_t cgam_row_sums_count(const char *text)
{
    int64_t count = 1;
    bool quoted = false;
    for (; *text; text++) {
        quoted ^= *text == '\'';
        count += *text == ';' && !quoted;
    }
    return count;
}

cgam_status cgam_row_sums(const cgam_bank *bank, const char *option, const char *text,
                          cgam_row_names_of *names, void *user, double **out, int64_t *rows)
{
    cgam_env *env = bank->env;
    const sums s = {bank, option, names, user};
    int64_t d = cgam_bank_describe(bank).d, count = cgam_row_sums_count(text);
    double *row = cgam_alloc(env, (size_t)d, sizeof *row);
    double *data = cgam_zalloc(env, (size_t)(count * d), sizeof *data);
    cgam_status status = row && data ? CGAM_OK : cgam_fail_nomem(env, option);
    for (int64_t k = 0; k < count && status == CGAM_OK; k++, text++) {
        status = add_rows(&s, &text, row, data + k * d);
        if (status == CGAM_OK && k % 256 == 0 && cgam_interrupted(env)) status = CGAM_E_INTERRUPTED;
    }
    cgam_free(env, row);
    if (status != CGAM_OK) cgam_free(env, data);
    *out = status == CGAM_OK ? data : NULL;
    *rows = status == CGAM_OK ? count : 0;
    return status;
}

int64_t cgam_row_list(const char *text, int64_t below, int64_t *out, int64_t *last)
{
    int64_t count = 0;
    *last = -1;
    for (;; text++) {
        char *end;
        long long from = strtoll(text, &end, 10), to = from;
        if (end == text || *text == '-') return -1;
        if (*end == '-') {
            text = end + 1;
            to = strtoll(text, &end, 10);
            if (end == text || *text == '-') return -1;
        }
        if (to < from) return -1;
        if (to > *last) *last = to;
        for (long long i = from; out && i <= to; i++) out[count + i - from] = i;
        if (to < below) count += to - from + 1;
        text = end;
        if (!*text) return count;
        if (*text != ',') return -1;
    }
}
