/* The options of the study verbs say the studies' own defaults. */
#include "support/check.h"

#include "app/verbs.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Field of each numeric option, and whether it is a list. */
static const struct {
    const char *name;
    size_t offset;
    int kind;
} fields[] = {
#define FIELD(option, field, kind)                                                                 \
    {                                                                                              \
        option, offsetof(cgam_study_opts, field), kind                                             \
    }
    FIELD("trials", trials, CGAM_INT),
    FIELD("seed", seed, CGAM_INT),
    FIELD("n", n, CGAM_INT),
    FIELD("d", d, CGAM_INT),
    FIELD("banks", banks, CGAM_INT),
    FIELD("example", example, CGAM_INT),
    FIELD("max-iter", max_iter, CGAM_INT),
    FIELD("fold-trials", fold_trials, CGAM_INT),
    FIELD("alpha", alpha, CGAM_REAL),
    FIELD("alpha", alphas, CGAM_REALS),
    FIELD("beta", beta, CGAM_REAL),
    FIELD("sigma-c", sigma_c, CGAM_REAL),
    FIELD("centre", centre, CGAM_REAL),
    FIELD("spread", spread, CGAM_REAL),
    FIELD("t-cap", t_cap, CGAM_REAL),
    FIELD("delta", delta, CGAM_REAL),
    FIELD("noise", noise, CGAM_REAL),
    FIELD("tol", tol, CGAM_REAL),
    FIELD("lambda", lambda, CGAM_REALS),
    FIELD("sigma-q", sigma_q, CGAM_REALS),
    FIELD("ratio", ratio, CGAM_REALS),
};

static void compare(const cgam_verb *verb, const cgam_param *p, const cgam_study_opts *o)
{
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (strcmp(fields[i].name, p->name) != 0 || fields[i].kind != (int)p->kind) continue;
        const char *at = (const char *)o + fields[i].offset;
        if (p->kind == CGAM_REALS) {
            cgam_list list;
            memcpy(&list, at, sizeof list);
            const char *text = p->fallback;
            for (int64_t k = 0; k < list.count; k++) {
                char *end;
                CHECK_CLOSE(strtod(text, &end), list.values[k], 0);
                text = *end ? end + 1 : end;
            }
            assert_string_equal(text, "");
        } else if (p->kind == CGAM_REAL) {
            double value;
            memcpy(&value, at, sizeof value);
            CHECK_CLOSE(strtod(p->fallback, NULL), value, 0);
        } else {
            int64_t value;
            memcpy(&value, at, sizeof value);
            assert_int_equal(strtoll(p->fallback, NULL, 10), value);
        }
        return;
    }
    fail_msg("%s: --%s has a default and no field", verb->name, p->name);
}

static void defaults_are_those_of_the_studies(void **state)
{
    (void)state;
    int verbs = 0;
    for (int v = 0; cgam_verbs[v]; v++) {
        const cgam_verb *verb = cgam_verbs[v];
        if (strncmp(verb->name, "study ", 6) != 0) continue;
        int kind = 0;
        while (kind < CGAM_STUDY_KINDS &&
               strcmp(cgam_study_name((cgam_study_kind)kind), verb->name + 6) != 0)
            kind++;
        assert_true(kind < CGAM_STUDY_KINDS);
        cgam_study_opts o = cgam_study_opts_default((cgam_study_kind)kind);
        for (const cgam_param *p = verb->params; *p->name; p++)
            if (p->fallback &&
                (p->kind == CGAM_INT || p->kind == CGAM_REAL || p->kind == CGAM_REALS))
                compare(verb, p, &o);
        verbs++;
    }
    assert_int_equal(verbs, CGAM_STUDY_KINDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(defaults_are_those_of_the_studies)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
