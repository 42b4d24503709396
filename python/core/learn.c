/* learn.c: gradients of recalls. */
#include "core.h"

/* An argument of plan_grad: an array, or None if it is not given or not wanted. */
enum {
    EACH = -1,
    N = -2,
    D = -3,
    D_C = -4,
    CONTEXTS = -5,
    SIZES = 6
}; /* sizes that the call decides */
typedef struct slot {
    const char *name;
    size_t offset;   /* of the pointer in its struct */
    int rows, count; /* it has rows * count numbers; each a number or one of the sizes above */
} slot;

#define IN(name_, member_, count_)                                                                 \
    {                                                                                              \
        name_, offsetof(cgam_gradient_in, member_), EACH, count_                                   \
    }
static const slot slots_in[] = {
    IN("start", recall.start, N),
    IN("weight", weight, 1),
    IN("x", x, D),
    IN("dp", dp, N),
    IN("dr", dr, N),
    IN("dy", dy, D),
};

#define OUT(name_, member_, rows_, count_)                                                         \
    {                                                                                              \
        name_, offsetof(cgam_gradient, member_), rows_, count_                                     \
    }
static const slot slots_out[] = {
    OUT("loss", loss, EACH, 1),
    OUT("p", p, EACH, N),
    OUT("r", r, EACH, N),
    OUT("readout", readout, EACH, D),
    OUT("positive", positive, EACH, 1),
    OUT("b", b, EACH, N),
    OUT("u", u, EACH, N),
    OUT("b_error", b_error, EACH, 1),
    OUT("u_error", u_error, EACH, 1),
    OUT("q", q, EACH, D),
    OUT("c", c, CONTEXTS, D_C),
    OUT("P", P, D, D_C),
    OUT("W", W, N, D_C),
    OUT("Z", Z, N, D),
    OUT("alpha", alpha, 1, 1),
    OUT("beta", beta, 1, 1),
    OUT("lam", lambda, 1, 1),
};
enum {
    SLOTS_IN = sizeof slots_in / sizeof *slots_in,
    SLOTS_OUT = sizeof slots_out / sizeof *slots_out
};

/* The arguments of plan_grad, in this order; then those of slots_in, and those of slots_out. */
enum { PLAN_, QUERIES, LOSS, MARGIN, QUERY, CONTEXT, TARGET, RESULTS, LEFT_OUT, FIRST };
enum { GRAD_ARGS = FIRST + SLOTS_IN + SLOTS_OUT };

static int64_t numbers_of(const slot *s, const int64_t *sizes)
{
    return numbers(s->rows > 0 ? s->rows : sizes[-s->rows],
                   s->count > 0 ? s->count : sizes[-s->count]);
}

static int take_in(arrays *a, PyObject *const *args, const int64_t *sizes, cgam_gradient_in *in)
{
    in->recall.queries = sizes[-EACH];
    in->recall.q = array_in(a, args[QUERY], "query", numbers(sizes[-EACH], sizes[-D]), NULL);
    if (!in->recall.q || context_in(a, args[CONTEXT], sizes[-D_C], &in->recall) != 0 ||
        target_in(a, args[TARGET], &in->recall) != 0)
        return -1;
    for (int k = 0; k < SLOTS_IN && !PyErr_Occurred(); k++) {
        const slot *s = &slots_in[k];
        *(const double **)((char *)in + s->offset) =
            array_in_or_none(a, args[FIRST + k], s->name, numbers_of(s, sizes));
    }
    return PyErr_Occurred() ? -1 : 0;
}

static int take_out(arrays *a, PyObject *const *args, const int64_t *sizes, cgam_gradient *out)
{
    int64_t B = sizes[-EACH];
    if (args[RESULTS] != Py_None)
        out->results =
            array_raw(a, args[RESULTS], "results", numbers(B, (int64_t)sizeof *out->results));
    if (!PyErr_Occurred() && args[LEFT_OUT] != Py_None)
        out->left_out = array_raw(a, args[LEFT_OUT], "left_out", B);
    for (int k = 0; k < SLOTS_OUT && !PyErr_Occurred(); k++) {
        const slot *s = &slots_out[k];
        *(double **)((char *)out + s->offset) =
            array_out_or_none(a, args[FIRST + SLOTS_IN + k], s->name, numbers_of(s, sizes));
    }
    return PyErr_Occurred() ? -1 : 0;
}

/* With left_out, queries without a gradient are left out. */
static PyObject *plan_grad(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)self;
    if (count != GRAD_ARGS)
        return PyErr_Format(PyExc_TypeError, "plan_grad takes %d arguments", GRAD_ARGS);
    handle *h = handle_of(args[PLAN_], PLAN);
    if (!h) return NULL;
    cgam_gradient_opts opts = cgam_gradient_opts_default();
    int64_t B = PyLong_AsLongLong(args[QUERIES]);
    if (!PyErr_Occurred()) opts.margin = PyFloat_AsDouble(args[MARGIN]);
    const char *loss = PyErr_Occurred() ? NULL : text_of(args[LOSS], "loss");
    if (!loss) return NULL;
    int found = cgam_word_find(cgam_loss_words, loss);
    if (found < 0) return PyErr_Format(PyExc_ValueError, "invalid loss '%s'", loss);
    if (B < 1) return PyErr_Format(PyExc_ValueError, "invalid sizes: %lld queries", (long long)B);
    opts.loss = (cgam_loss)found;
    opts.leave_out = args[LEFT_OUT] != Py_None;
    cgam_bank_info info = cgam_bank_describe(((handle *)h->keep)->it);
    cgam_gradient_in in = {0};
    cgam_gradient out = {0};
    arrays a = {0};
    int64_t sizes[SIZES] = {[-EACH] = B, [-N] = info.n, [-D] = info.d, [-D_C] = h->d_c};
    bool fine = take_in(&a, args, sizes, &in) == 0;
    sizes[-CONTEXTS] = in.recall.c && !in.recall.c_per_query ? 1 : B; /* a shared one has one row */
    fine = fine && take_out(&a, args, sizes, &out) == 0;
    cgam_status status = CGAM_OK;
    if (fine) {
        call c;
        call_begin(&c);
        status = cgam_recall_gradient(h->it, &in, &opts, &out);
        call_end(&c);
        if (status != CGAM_OK) raise_status(h->box->env, status);
    }
    arrays_release(&a);
    return fine && status == CGAM_OK ? Py_NewRef(Py_None) : NULL;
}

static PyObject *grad_names(PyObject *self, PyObject *none)
{
    (void)self, (void)none;
    PyObject *list = PyList_New(0);
    for (int k = 0; list && k < SLOTS_IN + SLOTS_OUT; k++) {
        PyObject *name =
            PyUnicode_FromString(k < SLOTS_IN ? slots_in[k].name : slots_out[k - SLOTS_IN].name);
        if (!name || PyList_Append(list, name) != 0) Py_CLEAR(list);
        Py_XDECREF(name);
    }
    return list;
}

PyMethodDef learn_methods[] = {
    {"plan_grad", (PyCFunction)(void (*)(void))plan_grad, METH_FASTCALL, NULL},
    {"grad_names", grad_names, METH_NOARGS, "names of plan_grad's last arguments, in order"},
    {NULL, NULL, 0, NULL},
};
