/* widen.h: conversion of stored numbers to doubles and back. */
#ifndef CGAM_SRC_NUM_CPU_WIDEN_H
#define CGAM_SRC_NUM_CPU_WIDEN_H

#include <cgam/base.h>

/* dst[i] = (double)src[i]; every f64, f32, f16, bf16 and i32 value is exact. */
void cgam_widen(cgam_dtype dtype, const void *src, int64_t n, double *dst);

/* Number `at` of an array. */
static inline double cgam_stored(cgam_dtype dtype, const void *data, int64_t at)
{
    double z;
    cgam_widen(dtype, (const char *)data + (size_t)at * cgam_dtype_size(dtype), 1, &z);
    return z;
}

/* dst[i] = src[i] rounded to nearest even; dtype is f64, f32, f16 or bf16. */
void cgam_narrow(cgam_dtype dtype, const double *src, int64_t n, void *dst);

#endif
