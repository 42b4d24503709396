/* verb_serve.c: parameters of the verb serve. The server itself is in src/serve. */
#include "app/params.h"
#include "app/verbs.h"
#include "base/env.h"

static const cgam_param params[] = {
    CGAM_PARAM_TEXT("bank", "[ID=]FILE[:NAME]",
                    "a bank that requests may name; ID defaults to the file's name without its "
                    "extension. The bank demo always exists",
                    .many = true),
    CGAM_PARAM_TEXT("names", "[ID=]FILE",
                    "names of the memories of bank ID, one per line; default: X.names beside X.npy",
                    .many = true),
    CGAM_PARAM_TEXT("store", "[ID=]FILE", "a store of states that requests may name", .many = true),
    CGAM_PARAM_TEXT("cache", "[ID=]FILE.safetensors",
                    "a semantic cache that requests may name, read and change", .many = true),
    CGAM_PARAM_TEXT("model", "[ID=]FILE",
                    "a GGUF model that requests may name; the first is the default", .many = true),
    CGAM_PARAM_TEXT("root", "DIR",
                    "the only folder that requests may write to; their out is a name in it",
                    .writes = true),
    CGAM_PARAM(CGAM_TEXT, "host", "ADDRESS", "127.0.0.1", 0, 0,
               "address to listen on; any but a loopback address requires a token, which is then "
               "sent unencrypted"),
    CGAM_PARAM_INT("port", "N", "0", 0, 65535, "port to listen on; 0: any free port"),
    CGAM_PARAM_TEXT("token", "T", "token that requests must carry; random if not given"),
    CGAM_PARAM_TEXT("token-file", "FILE", "read the token from the first line of a file"),
    CGAM_PARAM_FLAG("no-token", "accept requests without a token; loopback only"),
    CGAM_PARAM_TEXT("allow-host", "NAME[:PORT]",
                    "also accept this name as Host, for example that of a proxy", .many = true),
    CGAM_PARAM_TEXT("allow-origin", "URL", "allow requests from pages of this origin (CORS)",
                    .many = true),
    CGAM_PARAM_INT("max-body", "MB", "64", 1, 4096, "size limit of a request"),
    CGAM_PARAM_INT("max-requests", "N", "64", 1, 10000,
                   "limit of verbs that run or wait; further requests get 503"),
    CGAM_PARAM_INT("max-queries", "N", "10000", 1, 1e9, "limit of vectors in a request"),
    CGAM_PARAM_INT("max-rows", "N", "200000", 1, 1e9,
                   "limit of rows in an answer: memories listed per query, times queries"),
    CGAM_PARAM_REAL("timeout", "S", "300", 0.001, 1e9, "seconds after which a verb is stopped"),
    CGAM_PARAM_REAL("out-timeout", "S", "86400", 0.001, 1e9,
                    "the same for verbs that write under --root, such as a study"),
    CGAM_PARAM_INT("plan-cache", "MB", "2048", 0, 1048576,
                   "memory for factored gate operators and open models kept between requests"),
    CGAM_PARAM_INT(
        "model-memory", "MB", "0", 0, 1 << 30,
        "memory limit of a model process, besides its file; 0: as much as the machine has"),
    CGAM_PARAM_FLAG("metrics", "answer GET /metrics, for Prometheus"),
    CGAM_PARAM_FLAG("log", "write a JSON line to standard error for each request"),
    CGAM_PARAM_FLAG("open", "open the page in the browser"),
    CGAM_PARAM_FLAG(
        "guest",
        "internal: run model verbs for the server that started this process, over standard input"),
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
