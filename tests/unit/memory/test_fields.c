/* Tables of structs: defaults, ranges and words are those of the library. */
#include "app/fields.h"
#include "lab/map.h"
#include "memory/fields.h"
#include "net/net.h"
#include "support/check.h"

#include <cgam/flow.h>
#include <cgam/recall.h>

#include "support/owned.h"

/* The default of a row is that of the struct. */
static void check_defaults(const cgam_field *rows, const void *usual)
{
    for (const cgam_field *f = rows; *f->name; f++) {
        double have = cgam_field_number(f, usual), want = have;
        if (f->kind == CGAM_FLAG) want = 0;
        else if (f->find) assert_true(f->find(f->fallback, &want));
        else if (f->kind == CGAM_CHOICE) want = cgam_field_choice(f, f->fallback);
        else if (f->fallback) want = strtod(f->fallback, NULL);
        if (!(have == want) && !isnan(have))
            fail_msg("%s: the struct has %g, the row %g", f->name, have, want);
        if (f->fallback && f->max > 0) assert_true(want >= f->min && want <= f->max);
    }
}

TEST(defaults_are_those_of_the_structs)
{
    cgam_recall_opts recall = cgam_recall_opts_default();
    cgam_map_flow_opts flow = cgam_map_flow_opts_default();
    flow.switch_time = NAN; /* a row without default */
    check_defaults(cgam_recall_opts_rows, &recall);
    check_defaults(cgam_map_flow_opts_rows, &flow);
    check_defaults(cgam_map_opts_rows, &(cgam_map_opts){.beta = 1, .lambda = 1});
}

/* The words of a row are those of the enum, in its order, and no more. */
#define CHECK_WORDS(table_, row_, words_)                                                          \
    do {                                                                                           \
        const cgam_field *f = cgam_field_find(cgam_fields(table_), row_, strlen(row_));            \
        assert_non_null(f);                                                                        \
        size_t length;                                                                             \
        int k = 0;                                                                                 \
        for (const char *w = NULL; (w = cgam_field_word(f, w, &length)); k++) {                    \
            assert_int_equal(length, strlen(cgam_word(words_, k)));                                \
            assert_memory_equal(w, cgam_word(words_, k), length);                                  \
        }                                                                                          \
        assert_string_equal(cgam_word(words_, k), "?");                                            \
    } while (0)

TEST(words_are_those_of_the_enums)
{
    CHECK_WORDS("recall_opts", "mode", cgam_mode_words);
    CHECK_WORDS("result", "end", cgam_end_words);
    CHECK_WORDS("route", "path", cgam_path_words);
    CHECK_WORDS("route", "precision", cgam_dtype_words);
    CHECK_WORDS("transition", "kind", cgam_transition_words);
    CHECK_WORDS("bank_info", "dtype", cgam_dtype_words);
    CHECK_WORDS("gate_info", "regime", cgam_regime_words);
    CHECK_WORDS("flow_report", "end", cgam_flow_end_words);
    CHECK_WORDS("flow_report", "method", cgam_flow_method_words);
    assert_null(cgam_fields("nothing"));
}

TEST(a_struct_becomes_a_document)
{
    const cgam_result r = {.winner = -1,
                           .p = 0.5,
                           .gap = NAN,
                           .end = CGAM_END_ROSE,
                           .unique = -1,
                           .contraction = 2,
                           .contraction_proved = true,
                           .fold_margin = INFINITY,
                           .rescored = 7};
    OWNED(json_t) doc = cgam_fields_json(cgam_result_rows, &r, CGAM_WITH_FAST);
    assert_true(json_is_null(json_object_get(doc, "winner")));
    assert_true(json_is_null(json_object_get(doc, "gap")));
    assert_true(json_is_null(json_object_get(doc, "unique")));
    assert_string_equal(cgam_json_get_text(doc, "end"), "rose");
    assert_int_equal(cgam_json_get_int(doc, "fast.rescored"), 7);
    assert_string_equal(cgam_json_get_text(doc, "certificates.contraction"), "proved");
    assert_null(cgam_json_at(doc, "certificates.fold_margin"));
    assert_null(cgam_json_at(doc, "certificates.unique"));
    assert_null(json_object_get(doc, "p_none"));
    assert_null(json_object_get(doc, "target"));
    json_object_clear(doc);
    cgam_fields_put_some(doc, "q=p rounds=iterations p", cgam_result_rows, &r);
    assert_int_equal(json_object_size(doc), 3);
    assert_true(cgam_json_get_real(doc, "q") == 0.5);
}
