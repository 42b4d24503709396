/* Claims about language models and their nulls: where contexts carry nothing no claim may hold, at 1%; where they
 * carry everything all must; the luck of one draw of demonstrations decides nothing. */
#include "lab/claims/models.h"
#include "lab/claims/models_tests.h"
#include "told.h"

enum { CLAIMS = 29 }; /* of studies with every part */
static cgam_claims claims;

/* Decides the claims on one study drawn from a world. */
static void decide_on(cgam_rng *rng, const world *w)
{
    static cgam_models models;
    models = (cgam_models){.count = 1};
    snprintf(models.study[0].name, sizeof models.study[0].name, "told");
    models.study[0].doc = told_study(rng, w);
    cgam_models_claims(&models, &claims);
    json_decref(models.study[0].doc);
}

/* ---- Tests ------------------------------------------------------------------------------- */
/* Student's t: v = 1 is Cauchy, v = 2 has a closed form, many are normal; table values of v = 4 and 7. */
TEST(students_tail_is_that_of_tables)
{
    CHECK_REL(cgam_student_tail(3, 1), 0.5 - atan(3) / acos(-1.0), 1e-12);
    CHECK_REL(cgam_student_tail(3, 2), 0.5 - 3 / (2 * sqrt(11)), 1e-12);
    CHECK_REL(cgam_student_tail(3.746947388, 4), 0.01, 1e-8);
    CHECK_REL(cgam_student_tail(2.997951567, 7), 0.01, 1e-8);
    CHECK_REL(cgam_student_tail(2.326347874, 1000000), 0.01, 1e-8);
    CHECK_REL(cgam_student_tail(2.5, 100000), cgam_student_tail(2.5, 100001), 2e-4);
    CHECK_CLOSE(cgam_student_tail(-1.3, 6) + cgam_student_tail(1.3, 6), 1, 1e-14);
    CHECK_CLOSE(cgam_student_tail(0, 5), 0.5, 1e-14);
}

/* The same difference: over one draw of shared demonstrations open, over several only if these agree. */
TEST(one_draw_of_shared_demonstrations_decides_nothing)
{
    static const double agree[] = {0.3, 0.32, 0.28, 0.31, 0.29}, lucky[] = {1.2, -0.1, 0.2, 0, 0.2};
    evidence e = {.shared = true};
    cgam_evidence_add(&e, 0.3, 0.01, 200);
    assert_int_equal(cgam_evidence_judge(&e, 1), OPEN);
    e = (evidence){.shared = false};
    cgam_evidence_add(&e, 0.3, 0.01, 200);
    assert_int_equal(cgam_evidence_judge(&e, 1), SHOWN);
    for (int which = 0; which < 2; which++) {
        e = (evidence){.shared = true};
        for (int d = 0; d < 5; d++) cgam_evidence_add(&e, (which ? lucky : agree)[d], 0.01, 200);
        assert_int_equal(cgam_evidence_judge(&e, 1), which ? OPEN : SHOWN);
    }
    e = (evidence){.shared = false};
    cgam_evidence_add(&e, 0.3, 0.01, CGAM_QUERIES_MIN - 1);
    assert_int_equal(cgam_evidence_judge(&e, 1), OPEN);
    e = (evidence){.shared = false};
    cgam_evidence_add(&e, -0.3, 0.01, CGAM_QUERIES_MIN);
    assert_int_equal(cgam_evidence_judge(&e, 1), REFUTED);
}

/* Answers by the exact sign test: of seven that differ, seven in one direction are significant, six of six are not. */
TEST(answers_are_compared_by_those_that_differ)
{
    char a[CGAM_QUERIES_MIN + 1], b[CGAM_QUERIES_MIN + 1];
    for (int differ = 6; differ < 8; differ++) {
        for (int i = 0; i < CGAM_QUERIES_MIN; i++) a[i] = i < 20 ? '1' : '0', b[i] = a[i];
        a[CGAM_QUERIES_MIN] = b[CGAM_QUERIES_MIN] = '\0';
        for (int i = 0; i < differ; i++) b[i] = '0';
        for (int way = 0; way < 2; way++) {
            evidence e = {.shared = false};
            cgam_evidence_answers(&e, 2, way ? (const char *[]){b, a} : (const char *[]){a, b},
                                  (double[]){1, -1});
            assert_int_equal(cgam_evidence_judge(&e, 1), differ == 6 ? OPEN
                                                         : way       ? REFUTED
                                                                     : SHOWN);
        }
    }
    evidence e = {.shared = false};
    cgam_evidence_answers(&e, 2, (const char *[]){a, "101"}, (double[]){1, -1});
    assert_int_equal(cgam_evidence_judge(&e, 1), SILENT);
}

/* ---- Worlds ------------------------------------------------------------------------------ */
TEST(where_contexts_carry_everything_all_claims_hold)
{
    for (int which = 0; which < 2; which++) {
        world w = everything;
        cgam_rng rng = cgam_rng_stream(5, (uint64_t)which);
        if (which) w.shared = true, w.draws = 6, w.luck = 0.01, w.queries = 100;
        decide_on(&rng, &w);
        assert_int_equal(claims.count, CLAIMS);
        for (int i = 0; i < claims.count; i++) {
            const cgam_claim *c = &claims.claim[i];
            char text[200];
            if (c->verdict != CGAM_HOLDS)
                print_error("%s: %s (%s; null %s)\n", c->says, cgam_verdict_text(c, text),
                            c->numbers, c->null);
            assert_int_equal(c->verdict, CGAM_HOLDS);
            if (strstr(c->says, "feedback λ² changes no answer")) continue; /* an identity */
            assert_non_null(strstr(c->null, ": does not hold"));
            assert_null(strstr(c->null, "holds on"));
        }
    }
}

TEST(one_shared_draw_holds_nothing_however_strong)
{
    world w = everything;
    cgam_rng rng = cgam_rng_stream(6, 0);
    w.shared = true;
    decide_on(&rng, &w);
    for (int i = 0; i < claims.count; i++)
        if (!strstr(claims.claim[i].says, "changes no answer"))
            assert_int_equal(claims.claim[i].verdict, CGAM_NOT_DECIDED);
    assert_non_null(strstr(claims.claim[0].numbers, "one draw of shared demonstrations"));
    w.shared = false;
    w.queries = CGAM_QUERIES_MIN - 1;
    decide_on(&rng, &w);
    for (int i = 0; i < claims.count; i++)
        assert_int_equal(claims.claim[i].verdict, CGAM_NOT_DECIDED);
}

/* Worlds without content, each a way to look as if there were some. */
static const struct {
    const char *name;
    world w;
} empty[] = {
    {"demonstrations do nothing",
     {.queries = 80,
      .zero = 0.5,
      .icl = 0.5,
      .own = 0.5,
      .null = 0.5,
      .few = 0.5,
      .null_few = 0.5,
      .early = 0.5,
      .null_early = 0.5,
      .from = LATE,
      .mass = 0.4,
      .null_mass = 0.4,
      .separable = {0.5, 0.5},
      .changed = 0.3,
      .again = 0.3,
      .readout = 0.5,
      .add = 0.5,
      .ridge = 0.5,
      .mean = 0.5,
      .left_out = 0.5}},
    {"their format does all, what they say nothing",
     {.queries = 80,
      .zero = 0.05,
      .icl = 0.7,
      .own = 0.7,
      .null = 0.7,
      .few = 0.4,
      .null_few = 0.4,
      .early = 0.2,
      .null_early = 0.2,
      .drop = 5,
      .null_drop = 5,
      .from = LATE,
      .mass = 0.9,
      .null_mass = 0.9,
      .rise = {2, 2, 2, 2},
      .separable = {0.5, 0.5},
      .margin = {-0.1, -0.02},
      .changed = 0.43,
      .again = 0.43,
      .readout = 0.3,
      .add = 0.3,
      .ridge = 0.3,
      .mean = 0.7,
      .left_out = 0.7}},
    {"a strong context lowers any answer; zero-shot is above demonstrations",
     {.queries = 80,
      .zero = 0.62,
      .icl = 0.53,
      .own = 0.62,
      .null = 0.62,
      .few = 0.6,
      .null_few = 0.6,
      .early = 0.62,
      .null_early = 0.62,
      .drop = 3,
      .null_drop = 3,
      .from = 2,
      .mass = 0.5,
      .null_mass = 0.5,
      .rise = {0, -3, -3, -3},
      .separable = {0.5, 0.62},
      .margin = {0, 0},
      .changed = 0.1,
      .again = 0.1,
      .readout = 0.62,
      .add = 0.62,
      .ridge = 0.62,
      .mean = 0.62,
      .left_out = 0.62}},
    {"the same with the luck of shared draws",
     {.queries = 40,
      .draws = 5,
      .shared = true,
      .luck = 0.1,
      .zero = 0.3,
      .icl = 0.6,
      .own = 0.5,
      .null = 0.5,
      .few = 0.5,
      .null_few = 0.5,
      .early = 0.5,
      .null_early = 0.5,
      .drop = 3,
      .null_drop = 3,
      .from = LATE,
      .mass = 0.5,
      .null_mass = 0.5,
      .rise = {0, 0, 0, 0},
      .separable = {0.5, 0.5},
      .margin = {0, 0},
      .changed = 0.3,
      .again = 0.3,
      .readout = 0.5,
      .add = 0.5,
      .ridge = 0.5,
      .mean = 0.5,
      .left_out = 0.5}},
};

/* Each claim on so many studies of a world, its own test alone, whether or not a null then takes the verdict back: at 1% it holds for 4 of 400; more than 13 has a chance of 7e-5. */
TEST(where_contexts_carry_nothing_no_claim_holds)
{
    enum { STUDIES = 400, MOST = 13 };
    for (size_t which = 0; which < sizeof empty / sizeof *empty; which++) {
        int held[CGAM_CLAIMS_MAX] = {0};
        bool heard = false;
        for (int s = 0; s < STUDIES; s++) {
            cgam_rng rng = cgam_rng_stream(40 + which, (uint64_t)s);
            decide_on(&rng, &empty[which].w);
            heard = heard || claims.count == CLAIMS;
            for (int i = 0; i < claims.count; i++)
                held[i] += (claims.claim[i].verdict == CGAM_HOLDS ||
                            strstr(claims.claim[i].numbers, "a null passes")) &&
                           !strstr(claims.claim[i].says, "changes no answer");
        }
        assert_true(heard);
        for (int i = 0; i < claims.count; i++) {
            if (held[i] > MOST)
                print_error("%s: %s holds for %d of %d\n", empty[which].name, claims.claim[i].says,
                            held[i], STUDIES);
            assert_true(held[i] <= MOST);
        }
    }
}

/* The opposite is another verdict than nothing: 4 of the claims on a world where it is true. */
TEST(what_is_refuted_is_told_from_what_is_not_shown)
{
    world w = everything;
    cgam_rng rng = cgam_rng_stream(9, 0);
    w.readout = 1;          /* better than any edit */
    w.separable[0] = 0.6;   /* separated late */
    w.icl = 1, w.own = 0.3; /* far from demonstrations */
    decide_on(&rng, &w);
    int refuted = 0;
    for (int i = 0; i < claims.count; i++) refuted += claims.claim[i].verdict == CGAM_DOES_NOT_HOLD;
    assert_true(refuted >= 4);
    for (int i = 0; i < claims.count; i++) {
        char text[200];
        const char *says = claims.claim[i].says;
        bool opposite = strncmp(says, "A vector inside the model does more than", 40) == 0 ||
                        strncmp(says, "Separability peaks", 18) == 0 ||
                        strncmp(says, "Query plus", 10) == 0;
        if (opposite)
            assert_string_equal(cgam_verdict_text(&claims.claim[i], text), "does not hold");
    }
}

TEST_GROUP(NULL, NULL)
