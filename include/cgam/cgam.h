/* cgam.h: everything. */
#ifndef CGAM_CGAM_H
#define CGAM_CGAM_H

#include <cgam/bank.h>
#include <cgam/base.h>
#include <cgam/control.h>
#include <cgam/dataset.h>
#include <cgam/gate.h>
#include <cgam/io.h>
#include <cgam/lens.h>
#include <cgam/lm.h>
#include <cgam/probe.h>
#include <cgam/recall.h>
#include <cgam/store.h>
#include <cgam/sweep.h>
#include <cgam/theory.h>

#endif
