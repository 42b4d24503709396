/* landscape.c: the fixed points of a recall, and the branch that annealing follows. */
#include "core.h"

/* One query and its context, [d] and [d_c]. */
static int query_of(arrays *a, const handle *plan, PyObject *query, PyObject *context,
                    const double **q, const double **c)
{
    cgam_bank_info info = cgam_bank_describe(((handle *)plan->keep)->it);
    *q = array_in(a, query, "query", info.d, NULL);
    *c = *q ? array_in_or_none(a, context, "context", plan->d_c) : NULL;
    return PyErr_Occurred() ? -1 : 0;
}

static PyObject *bytes_of(const void *from, int64_t count, size_t size)
{
    return PyBytes_FromStringAndSize(from, (Py_ssize_t)((size_t)count * size));
}

/* plan_landscape(plan, query, context, starts, seed) -> (points, p, the rest as a dict) */
static PyObject *plan_landscape(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *object, *query, *context, *answer = NULL;
    long long starts;
    unsigned long long seed;
    if (!PyArg_ParseTuple(args, "OOOLK:plan_landscape", &object, &query, &context, &starts, &seed))
        return NULL;
    handle *plan = handle_of(object, PLAN);
    if (!plan) return NULL;
    arrays a = {0};
    const double *q, *c;
    if (query_of(&a, plan, query, context, &q, &c) == 0) {
        cgam_landscape found = {0};
        cgam_landscape_opts opts = {.starts = starts, .seed = seed};
        call at;
        call_begin(&at);
        cgam_status status = cgam_landscape_find(plan->it, q, c, &opts, &found);
        call_end(&at);
        if (status == CGAM_OK) {
            int64_t n = cgam_bank_describe(((handle *)plan->keep)->it).n;
            answer =
                Py_BuildValue("(NNN)", bytes_of(found.points, found.count, sizeof *found.points),
                              bytes_of(found.p, found.count * n, sizeof *found.p),
                              fields_dict(cgam_fields("landscape"), &found));
        } else raise_status(plan->box->env, status);
        cgam_landscape_free(plan->box->env, &found);
    }
    arrays_release(&a);
    return answer;
}

static PyObject *branch_of(const cgam_anneal *branch)
{
    if (branch->points == 0) return PyErr_Format(PyExc_ValueError, "branch requires mode anneal");
    PyObject *turns = PyList_New(0);
    for (int64_t i = 0; turns && i < branch->transitions; i++) {
        const cgam_transition *t = &branch->transition[i];
        PyObject *turn = Py_BuildValue("ds", t->beta, cgam_word(cgam_transition_words, t->kind));
        if (!turn || PyList_Append(turns, turn) != 0) Py_CLEAR(turns);
        Py_XDECREF(turn);
    }
    if (!turns) return NULL;
    return Py_BuildValue("(NN)", bytes_of(branch->path, branch->points, sizeof *branch->path),
                         turns);
}

/* plan_branch(plan, query, context) -> (path, [(beta, kind)]) */
static PyObject *plan_branch(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *object, *query, *context, *answer = NULL;
    if (!PyArg_ParseTuple(args, "OOO:plan_branch", &object, &query, &context)) return NULL;
    handle *plan = handle_of(object, PLAN);
    if (!plan) return NULL;
    arrays a = {0};
    cgam_recall_in in = {.queries = 1};
    if (query_of(&a, plan, query, context, &in.q, &in.c) == 0) {
        cgam_result result;
        cgam_anneal branch = {0};
        cgam_recall_out out = {.results = &result, .anneal = &branch};
        call at;
        call_begin(&at);
        cgam_status status = cgam_recall_run(plan->it, &in, &out);
        call_end(&at);
        answer = status == CGAM_OK ? branch_of(&branch) : raise_status(plan->box->env, status);
        cgam_anneal_free(plan->box->env, &branch);
    }
    arrays_release(&a);
    return answer;
}

/* -> layouts of the points of a landscape and of a branch */
static PyObject *landscape_layouts(PyObject *self, PyObject *none)
{
    (void)self, (void)none;
    return Py_BuildValue("(NN)", fields_layout(cgam_fields("point"), sizeof(cgam_point)),
                         fields_layout(cgam_fields("anneal_point"), sizeof(cgam_anneal_point)));
}

PyMethodDef landscape_methods[] = {
    {"plan_landscape", plan_landscape, METH_VARARGS, NULL},
    {"plan_branch", plan_branch, METH_VARARGS, NULL},
    {"landscape_layouts", landscape_layouts, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
