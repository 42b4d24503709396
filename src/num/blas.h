/* blas.h: is the BLAS at hand running with this CPU's instructions? */
#ifndef CGAM_SRC_NUM_BLAS_H
#define CGAM_SRC_NUM_BLAS_H

/* OpenBLAS picks its kernels by CPU model when it is loaded, and takes those of 2004 for a model
 * it does not know: a quarter of the speed. Returns the value that OPENBLAS_CORETYPE should have
 * had, or NULL when all is well or it is set already. It is read at load time only, so a program
 * that wants it starts itself anew. */
const char *cgam_blas_core_wanted(void);

#endif
