/* module.c: the module itself - calls into the library, exceptions for failures, the shared env. */
#include "core.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* ---- Ctrl-C ----------------------------------------------------------------------------------- */

static atomic_int stopping;
static struct sigaction python_handler;
static unsigned long main_thread;

/* Python's handler only sets a flag that is read later, between bytecodes; so this handler stops the
 * library, then calls Python's. */
static void on_signal(int number, siginfo_t *info, void *context)
{
    atomic_store(&stopping, 1);
    if (python_handler.sa_flags & SA_SIGINFO) python_handler.sa_sigaction(number, info, context);
    else python_handler.sa_handler(number);
}

static bool interrupted(void *user)
{
    (void)user;
    return atomic_load(&stopping) != 0;
}

static bool is_ours(const struct sigaction *a)
{
    return (a->sa_flags & SA_SIGINFO) && a->sa_sigaction == on_signal;
}

static bool catch_signal(struct sigaction *old)
{
    if (PyThread_get_thread_ident() != main_thread || sigaction(SIGINT, NULL, old) != 0)
        return false;
    if (!(old->sa_flags & SA_SIGINFO) && (old->sa_handler == SIG_DFL || old->sa_handler == SIG_IGN))
        return false;
    if (is_ours(old)) return false; /* nested */
    python_handler = *old;
    atomic_store(&stopping, 0);
    struct sigaction ours = *old;
    ours.sa_sigaction = on_signal;
    ours.sa_flags |= SA_SIGINFO;
    return sigaction(SIGINT, &ours, NULL) == 0;
}

/* ---- BLAS ------------------------------------------------------------------------------------- */
/* The library requires OpenBLAS, which NumPy may share with it, to use one thread: it is set to one during
 * a call and back to NumPy's number afterwards. */
static struct {
    pthread_mutex_t lock;
    int calls, threads;
    int (*get)(void);
    void (*set)(int);
} blas = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void blas_find(void)
{
    void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_NOLOAD);
    if (!library) return;
    *(void **)&blas.get = dlsym(library, "openblas_get_num_threads");
    *(void **)&blas.set = dlsym(library, "openblas_set_num_threads");
    if (!blas.get) blas.set = NULL;
}

static void blas_hold(void)
{
    if (!blas.set) return;
    pthread_mutex_lock(&blas.lock);
    if (blas.calls++ == 0) {
        blas.threads = blas.get();
        if (blas.threads != 1) blas.set(1);
    }
    pthread_mutex_unlock(&blas.lock);
}

static void blas_give(void)
{
    if (!blas.set) return;
    pthread_mutex_lock(&blas.lock);
    if (--blas.calls == 0 && blas.threads > 1) blas.set(blas.threads);
    pthread_mutex_unlock(&blas.lock);
}

/* ---- calls ------------------------------------------------------------------------------------ */

static locale_t plain;

void call_begin(call *c)
{
    c->catching = catch_signal(&c->old);
    call_begin_brief(c);
}

void call_begin_brief(call *c)
{
    c->thread = PyEval_SaveThread();
    c->locale = plain ? uselocale(plain) : (locale_t)0;
    blas_hold();
}

void call_end_brief(call *c)
{
    blas_give();
    if (plain) uselocale(c->locale);
    PyEval_RestoreThread(c->thread);
}

void call_end(call *c)
{
    call_end_brief(c);
    if (!c->catching) return;
    sigaction(SIGINT, &c->old, NULL);
    atomic_store(&stopping, 0); /* Python's flag is set; Python raises KeyboardInterrupt later */
}

/* ---- failures --------------------------------------------------------------------------------- */

static PyObject *raise_python; /* raise_status(name, message) of errors.py */

PyObject *raise_status(cgam_env *env, cgam_status status)
{
    char message[1024] = "";
    if (status == CGAM_E_INTERRUPTED) {
        if (!PyErr_Occurred() && PyErr_CheckSignals() == 0) PyErr_SetNone(PyExc_KeyboardInterrupt);
        return NULL;
    }
    if (PyErr_Occurred()) return NULL;
    if (env) snprintf(message, sizeof message, "%s", cgam_env_message(env));
    if (!message[0]) snprintf(message, sizeof message, "%s", cgam_status_text(status));
    if (!raise_python) PyErr_SetString(PyExc_RuntimeError, message);
    else {
        /* The message may quote bytes of a file, or end within a character. */
        PyObject *said = PyUnicode_DecodeUTF8(message, (Py_ssize_t)strlen(message), "replace");
        PyObject *none =
            said ? PyObject_CallFunction(raise_python, "sN", cgam_status_name(status), said) : NULL;
        Py_XDECREF(none);
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, message);
    }
    return NULL;
}

/* ---- envs ------------------------------------------------------------------------------------- */

static env_box shared;
static unsigned forks; /* number of forks up to this process */

env_box *env_take(int threads)
{
    if (threads < 0)
        return (env_box *)PyErr_Format(PyExc_ValueError, "threads is %d, it must be at least 1",
                                       threads);
    env_box *box = threads > 0 ? PyMem_Calloc(1, sizeof *box) : &shared;
    if (!box) return (env_box *)PyErr_NoMemory();
    if (box->refs++ > 0) return box;
    box->shared = threads == 0;
    cgam_env_opts opts = cgam_env_opts_default();
    opts.threads = threads;
    opts.interrupted = interrupted;
    int before = blas.get ? blas.get() : 0;
    cgam_status status = cgam_env_new(&opts, &box->env);
    if (before > 1) blas.set(before); /* the first env sets it to one */
    if (status == CGAM_OK) return box;
    box->env = NULL;
    env_drop(box);
    return (env_box *)raise_status(NULL, status);
}

void env_drop(env_box *box)
{
    if (!box || --box->refs > 0) return;
    cgam_env_free(box->env);
    box->env = NULL;
    if (!box->shared) PyMem_Free(box);
}

/* ---- handles ---------------------------------------------------------------------------------- */

static PyTypeObject *handle_type;

/* After a fork the threads of an env do not exist: it cannot be used, and nothing may be freed. */
static void handle_release(handle *h)
{
    void *it = h->it;
    bool ours = h->born == forks;
    h->it = NULL;
    if (it && ours) {
        switch (h->what) {
        case BANK: cgam_bank_free(it); break;
        case PLAN: cgam_recall_free(it); break;
        case GATE: cgam_gate_free(it); break;
        case SPECTRUM: cgam_spectrum_free(it); break;
        case NET: cgam_net_free(it); break;
        case MODEL: cgam_lm_close(it); break;
        case LENS: cgam_lens_free(it); break;
        case KINDS: break;
        }
    }
    if (ours) env_drop(h->box);
    h->box = NULL;
    while (h->views > 0) PyBuffer_Release(&h->view[--h->views]);
}

static int handle_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    handle *h = (handle *)self;
    Py_VISIT(h->keep);
    for (int i = 0; i < h->views; i++) Py_VISIT(h->view[i].obj);
    return 0;
}

static void handle_empty(handle *h)
{
    handle_release(h);
    Py_CLEAR(h->keep);
}

/* The collector clears the members of a cycle in any order, so an object that others borrow must stay
 * until they release it. No object borrows a net, and only a net can be part of a cycle, through its
 * callbacks. */
static int handle_clear(PyObject *self)
{
    if (((handle *)self)->what == NET) handle_empty((handle *)self);
    return 0;
}

static void handle_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    handle_empty((handle *)self);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

handle *handle_new(kind what, env_box *box, PyObject *keep)
{
    handle *h = PyObject_GC_New(handle, handle_type);
    if (!h) {
        env_drop(box);
        return NULL;
    }
    h->what = what;
    h->born = forks;
    h->it = NULL;
    h->box = box;
    h->views = 0;
    h->brief = false;
    h->d_c = 0;
    h->keep = keep;
    Py_XINCREF(keep);
    PyObject_GC_Track((PyObject *)h);
    return h;
}

static const char *const kind_names[KINDS] = {"bank", "plan",  "gate", "spectrum",
                                              "net",  "model", "lens"};

handle *handle_of(PyObject *object, kind what)
{
    handle *h = (handle *)object;
    if (Py_TYPE(object) != handle_type || h->what != what || !h->it) {
        PyErr_Format(PyExc_TypeError, "expected a %s", kind_names[what]);
        return NULL;
    }
    if (h->born != forks) {
        PyErr_Format(PyExc_RuntimeError,
                     "this %s was made before a fork; make it again in the child",
                     kind_names[what]);
        return NULL;
    }
    return h;
}

void *handle_it(PyObject *object, kind what)
{
    handle *h = handle_of(object, what);
    return h ? h->it : NULL;
}

static PyType_Slot handle_slots[] = {
    {Py_tp_dealloc, (void *)handle_dealloc},
    {Py_tp_traverse, (void *)handle_traverse},
    {Py_tp_clear, (void *)handle_clear},
    {Py_tp_doc, (void *)(uintptr_t) "An object of the library."},
    {0, NULL},
};
static PyType_Spec handle_spec = {
    .name = "cgam._core.Handle",
    .basicsize = sizeof(handle),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = handle_slots,
};

int handle_setup(PyObject *module)
{
    handle_type = (PyTypeObject *)PyType_FromSpec(&handle_spec);
    if (!handle_type && !PyErr_Occurred()) PyErr_NoMemory(); /* CPython 3.11 does not set it */
    return handle_type ? PyModule_AddObjectRef(module, "Handle", (PyObject *)handle_type) : -1;
}

/* ---- the module ------------------------------------------------------------------------------- */

static PyObject *set_up(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *raiser;
    if (!PyArg_ParseTuple(args, "Ok:set_up", &raiser, &main_thread)) return NULL;
    Py_XDECREF(raise_python);
    Py_INCREF(raiser);
    raise_python = raiser;
    Py_RETURN_NONE;
}

static PyObject *forked(PyObject *self, PyObject *none)
{
    (void)self, (void)none;
    forks++;
    main_thread = PyThread_get_thread_ident(); /* only the thread that forked exists */
    shared = (env_box){0};
    blas.calls = 0;
    pthread_mutex_init(&blas.lock, NULL);
    /* Another thread may have been in a call, which ends only in the parent. */
    struct sigaction now;
    if (sigaction(SIGINT, NULL, &now) == 0 && is_ours(&now))
        sigaction(SIGINT, &python_handler, NULL);
    atomic_store(&stopping, 0);
    Py_RETURN_NONE;
}

static PyObject *envs(PyObject *self, PyObject *none)
{
    (void)self, (void)none;
    return PyLong_FromLong(shared.refs);
}

static PyObject *version(PyObject *self, PyObject *none)
{
    (void)self, (void)none;
    return PyUnicode_FromString(cgam_version());
}

static PyMethodDef own_methods[] = {
    {"set_up", set_up, METH_VARARGS, "set_up(raise_status, ident of the main thread)"},
    {"forked", forked, METH_NOARGS, "Called in the child of a fork."},
    {"references", envs, METH_NOARGS, "How many objects share the env."},
    {"version", version, METH_NOARGS, "The library's version."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "cgam._core",
    .m_doc = "The C library as functions.",
    .m_size = -1,
};

PyMODINIT_FUNC PyInit__core(void); /* found by the interpreter */

PyMODINIT_FUNC PyInit__core(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (!module) return NULL;
    plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    blas_find();
    PyMethodDef *const all[] = {own_methods,  bank_methods,   recall_methods, learn_methods,
                                gate_methods, theory_methods, run_methods,    landscape_methods,
                                net_methods,  lm_methods,     lens_methods};
    bool fine = handle_setup(module) == 0 &&
                PyModule_AddIntConstant(module, "THREADS_MAX", CGAM_THREADS_MAX) == 0;
    for (size_t i = 0; i < sizeof all / sizeof *all && fine; i++)
        fine = PyModule_AddFunctions(module, all[i]) == 0;
    if (fine) return module;
    Py_DECREF(module);
    return NULL;
}
