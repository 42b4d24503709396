/* cgam.h: all public headers. */
#ifndef CGAM_CGAM_H
#define CGAM_CGAM_H

#include <cgam/ask.h>
#include <cgam/bank.h>
#include <cgam/base.h>
#include <cgam/flow.h>
#include <cgam/gate.h>
#include <cgam/io.h>
#include <cgam/learn.h>
#include <cgam/lm.h>
#include <cgam/net.h>
#include <cgam/recall.h>
#include <cgam/theory.h>

#endif
