/* host.c: what WebAssembly's C library lacks, and the parts of jansson that env.c calls; no JSON is read here. */
#include <jansson.h>
#include <sched.h>
#include <stdlib.h>

void json_get_alloc_funcs(json_malloc_t *allocate, json_free_t *release)
{
    *allocate = malloc;
    *release = free;
}

void json_set_alloc_funcs(json_malloc_t allocate, json_free_t release)
{
    (void)allocate;
    (void)release;
}

void json_delete(json_t *json) { (void)json; }

int sched_getaffinity(pid_t process, size_t size, cpu_set_t *set)
{
    (void)process, (void)size, (void)set;
    return -1;
}

int __sched_cpucount(size_t size, const cpu_set_t *set)
{
    (void)size, (void)set;
    return 1;
}
