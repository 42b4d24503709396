/* cgam.h: everything. */
#ifndef CGAM_CGAM_H
#define CGAM_CGAM_H

#include <cgam/as_net.h>
#include <cgam/bank.h>
#include <cgam/base.h>
#include <cgam/baseline.h>
#include <cgam/data.h>
#include <cgam/dataset.h>
#include <cgam/door.h>
#include <cgam/edit.h>
#include <cgam/explain.h>
#include <cgam/fit.h>
#include <cgam/flow.h>
#include <cgam/gate.h>
#include <cgam/gates.h>
#include <cgam/generate.h>
#include <cgam/inspect.h>
#include <cgam/io.h>
#include <cgam/landscape.h>
#include <cgam/lens.h>
#include <cgam/lens_view.h>
#include <cgam/lm.h>
#include <cgam/lm_study.h>
#include <cgam/map.h>
#include <cgam/net.h>
#include <cgam/pack.h>
#include <cgam/probe.h>
#include <cgam/prompt_file.h>
#include <cgam/ranks.h>
#include <cgam/recall.h>
#include <cgam/rng.h>
#include <cgam/states.h>
#include <cgam/store.h>
#include <cgam/study.h>
#include <cgam/sweep.h>
#include <cgam/theory.h>
#include <cgam/trace.h>
#include <cgam/vector.h>

#endif
