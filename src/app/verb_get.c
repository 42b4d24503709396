/* verb_get.c: libllama, the default model, word vectors and digits, fetched once into the user's cache. */
#include "app/params.h"
#include "app/progress.h"
#include "app/verbs.h"
#include "fetch/data.h"
#include "fetch/fetch.h"

static const cgam_param params[] = {
    CGAM_PARAM_CHOICE("SET", "glove|mnist", NULL,
                      "glove: 341,479 words as 100 numbers each; mnist: 70,000 handwritten digits",
                      .required = true),
    CGAM_PARAM_END,
};

static cgam_status fetch_data(cgam_call *call)
{
    cgam_data_set set;
    cgam_data got;
    cgam_line line;
    (void)cgam_data_set_find(cgam_args_text(call->args, "SET"), &set);
    cgam_progress progress = cgam_line_begin(&line, call->progress);
    cgam_status status = cgam_data_fetch(call->env, set, &progress, &got);
    cgam_line_clear(&line);
    if (status != CGAM_OK) return status;
    json_t *banks = json_array();
    for (int64_t i = 0; i < got.count; i++) {
        json_t *bank = cgam_json_object("bank=%s names=%s n=%jd d=%jd", got.bank[i].rows,
                                        got.bank[i].names, got.bank[i].n, got.bank[i].d);
        json_array_append_new(banks, bank);
    }
    cgam_json_add(call->doc, "set=%s fetched?=%d banks=%p", cgam_data_set_name(set), got.fetched,
                  banks);
    return CGAM_OK;
}

const cgam_verb cgam_verb_data_get = {
    .name = "data get",
    .local = true,
    .params = params,
    .run = fetch_data,
};

#define FETCHED(member_, kind_) CGAM_ROW(cgam_lm_fetched, member_, #member_, kind_, NULL)
static const cgam_field fetched_rows[] = {
    FETCHED(runtime, CGAM_TEXT),    FETCHED(runtime_fetched, CGAM_FLAG),
    FETCHED(model, CGAM_TEXT),      FETCHED(model_fetched, CGAM_FLAG),
    FETCHED(model_bytes, CGAM_INT), CGAM_ROWS_END,
};

static cgam_status fetch_model(cgam_call *call)
{
    cgam_line line;
    cgam_progress progress = cgam_line_begin(&line, call->progress);
    cgam_lm_fetched got;
    cgam_status status = cgam_lm_fetch(call->env, &progress, &got);
    cgam_line_clear(&line);
    if (status != CGAM_OK) return status;
    cgam_fields_put(call->doc, fetched_rows, &got, 0);
    return CGAM_OK;
}

const cgam_verb cgam_verb_lm_get = {
    .name = "lm get",
    .local = true,
    .run = fetch_model,
};
