/* run.c: verbs by name, on the shared env, or on a separate env if threads are given. */
#include "core.h"

/* run(verb, options as JSON, threads, progress) -> (document as JSON, negative) */
static PyObject *run(PyObject *self, PyObject *args)
{
    (void)self;
    const char *verb, *options;
    int threads, progress;
    if (!PyArg_ParseTuple(args, "ssip:run", &verb, &options, &threads, &progress)) return NULL;
    env_box *box = env_take(threads);
    if (!box) return NULL;
    cgam_ask_opts opts = cgam_ask_opts_default();
    opts.progress = progress != 0;
    cgam_document document;
    call c;
    call_begin(&c);
    cgam_status status = cgam_ask(box->env, verb, options, &opts, &document);
    call_end(&c);
    PyObject *out = NULL;
    if (status != CGAM_OK) raise_status(box->env, status);
    else out = Py_BuildValue("sO", document.text, document.negative ? Py_True : Py_False);
    cgam_text_free(box->env, document.text);
    env_drop(box);
    return out;
}

PyMethodDef run_methods[] = {
    {"run", run, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
