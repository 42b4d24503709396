/* verb_serve.c: parameters of the verb serve. The server itself is in src/serve. */
#include "app/params.h"
#include "app/verbs.h"
#include "base/env.h"

static const cgam_param params[] = {
    CGAM_PARAM_TEXT(
        "bank", "[ID=]FILE[:NAME]",
        "a bank that requests may name; ID is the file's name without its ending if not "
        "given. The bank demo is always there",
        .many = true),
    CGAM_PARAM_TEXT("names", "[ID=]FILE",
                    "names of the memories of bank ID, one a line; without it X.names beside X.npy",
                    .many = true),
    CGAM_PARAM_TEXT("store", "[ID=]FILE", "a store of states that requests may name", .many = true),
    CGAM_PARAM_TEXT("model", "[ID=]FILE",
                    "a GGUF model that requests may name; the first is taken where they name none",
                    .many = true),
    CGAM_PARAM_TEXT("root", "DIR",
                    "requests may write below it, and below it alone: their out is a name in it",
                    .writes = true),
    CGAM_PARAM(CGAM_TEXT, "host", "ADDRESS", "127.0.0.1", 0, 0,
               "address to listen on; another than this machine's own needs a token, which then "
               "travels in clear"),
    CGAM_PARAM_INT("port", "N", "0", 0, 65535, "port to listen on; 0 takes any that is free"),
    CGAM_PARAM_TEXT("token", "T", "what requests have to show; a random one if not given"),
    CGAM_PARAM_TEXT("token-file", "FILE", "take it from the first line of a file"),
    CGAM_PARAM_FLAG("no-token", "let everyone in who reaches the port of this machine"),
    CGAM_PARAM_TEXT("allow-host", "NAME[:PORT]",
                    "answer under this name too: that of a proxy in front, say", .many = true),
    CGAM_PARAM_TEXT("allow-origin", "URL", "let pages of this origin ask (CORS)", .many = true),
    CGAM_PARAM_INT("max-body", "MB", "64", 1, 4096, "largest request"),
    CGAM_PARAM_INT("max-requests", "N", "64", 1, 10000,
                   "verbs that run or wait; further requests get 503"),
    CGAM_PARAM_INT("max-queries", "N", "10000", 1, 1e9, "most vectors of a request"),
    CGAM_PARAM_INT("max-rows", "N", "200000", 1, 1e9,
                   "most rows of an answer: memories listed for each query, times queries"),
    CGAM_PARAM_REAL("timeout", "S", "300", 0.001, 1e9, "seconds after which a verb is stopped"),
    CGAM_PARAM_REAL("out-timeout", "S", "86400", 0.001, 1e9,
                    "the same of a verb that writes below --root: a study"),
    CGAM_PARAM_INT(
        "plan-cache", "MB", "2048", 0, 1048576,
        "room for factored gate operators and open models, kept from request to request"),
    CGAM_PARAM_INT("model-memory", "MB", "0", 0, 1 << 30,
                   "the most that the process of a model may take beside its file; 0: as much as "
                   "the machine has"),
    CGAM_PARAM_FLAG("metrics", "answer GET /metrics, for Prometheus"),
    CGAM_PARAM_FLAG("log", "a JSON line on standard error for each request"),
    CGAM_PARAM_FLAG("open", "open the page in the browser"),
    CGAM_PARAM_FLAG("guest",
                    "run the verbs of a model for the server that started this, over standard "
                    "input; for nobody else"),
    CGAM_PARAM_END,
};

cgam_status (*cgam_serve_run)(cgam_call *call);

static cgam_status serve_verbs(cgam_call *call)
{
    if (cgam_serve_run) return cgam_serve_run(call);
    return cgam_fail(call->env, CGAM_E_UNSUPPORTED,
                     "the server is part of the program cgam, not of the library");
}

const cgam_verb cgam_verb_serve = {
    .name = "serve",
    .local = true,
    .drains = true,
    .params = params,
    .run = serve_verbs,
};
