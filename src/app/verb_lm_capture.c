/* verb_lm_capture.c: hidden states of prompts into a store. */
#include "app/lm.h"
#include "app/verbs.h"
#include "base/env.h"

static const cgam_param params[] = {CGAM_PARAMS_PROMPTS, {.name = ""}};

typedef struct census {
    const char *model; /* digest of ours */
    char last[65];     /* of the group before */
    int64_t others;
} census;

/* Groups come model by model, so another digest is another model unless it was the last. */
static cgam_status count_others(void *user, const cgam_store_group *g)
{
    census *c = user;
    if (strcmp(g->model, c->model) != 0 && strcmp(g->model, c->last) != 0) c->others++;
    snprintf(c->last, sizeof c->last, "%s", g->model);
    return CGAM_OK;
}

static cgam_status put_census(cgam_call *call, cgam_lm_input *in)
{
    census c = {0};
    cgam_status status = cgam_lm_sha256(in->lm, &c.model);
    if (status == CGAM_OK) status = cgam_store_list(in->store, count_others, &c);
    cgam_json_put_int(call->doc, "other_models", c.others);
    return status;
}

static cgam_status run(cgam_call *call)
{
    cgam_lm_input in;
    if (!cgam_args_text(call->args, "store"))
        return cgam_fail(call->env, CGAM_E_ARG, "--store is needed: where the states are to go");
    cgam_status status = cgam_lm_input_open(call, &in);
    for (int64_t i = 0; i < in.n_shots && status == CGAM_OK; i++)
        status = cgam_lm_input_states(&in, in.shots[i], CGAM_DEMOS_TRUE, NULL);
    if (status == CGAM_OK) {
        json_t *shots = json_array();
        for (int64_t i = 0; i < in.n_shots; i++)
            json_array_append_new(shots, json_integer(in.shots[i]));
        cgam_put_lm_input(call->doc, &in);
        cgam_json_put(call->doc, "shots", shots);
        cgam_json_put_text(call->doc, "store", cgam_args_text(call->args, "store"));
        status = put_census(call, &in);
    }
    cgam_lm_input_close(&in);
    return status;
}

static void print(const json_t *doc, FILE *to)
{
    const json_t *model = json_object_get(doc, "model"), *c = json_object_get(doc, "capture");
    fprintf(to, "%s: %lld layers of %lld numbers\n", cgam_json_get_text(model, "description"),
            (long long)cgam_json_get_int(model, "layers") + 1,
            (long long)cgam_json_get_int(model, "width"));
    fprintf(to, "%lld prompts were in %s, %lld were run", (long long)cgam_json_get_int(c, "found"),
            cgam_json_get_text(doc, "store"), (long long)cgam_json_get_int(c, "computed"));
    if (cgam_json_get_int(c, "computed") > 0)
        fprintf(to, ": %lld tokens in %.1f s", (long long)cgam_json_get_int(c, "tokens"),
                cgam_json_get_real(c, "seconds"));
    fputc('\n', to);
    if (cgam_json_get_int(doc, "other_models") > 0)
        fprintf(to, "%s holds states of %lld other model%s too; they are kept apart\n",
                cgam_json_get_text(doc, "store"), (long long)cgam_json_get_int(doc, "other_models"),
                cgam_json_get_int(doc, "other_models") > 1 ? "s" : "");
}

const cgam_verb cgam_verb_lm_capture = {
    .name = "lm capture",
    .summary = "put hidden states of prompts into a store",
    .about =
        "Runs every query with each number of demonstrations and keeps the residual stream of "
        "the last token after every layer (0 is the embedding). Many prompts share a decode; "
        "what all begin with is computed once. What the store holds already is not run again, "
        "so an interrupted capture goes on where it was.\n\n"
        "Where weights are quantised libllama rounds activations to 8 bits, which moves states "
        "by 2 to 7 % and by a little more or less according to the batch. --exact runs a plain "
        "f32 pass instead, whose results do not depend on the batch beyond 1e-6.",
    .example = "cgam lm capture --dataset sentiment --shots 0,4 --queries 40 --store s.db",
    .params = params,
    .run = run,
    .print = print,
};
