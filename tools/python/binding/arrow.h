// The timeline as an Arrow stream: the PyCapsule interface of pandas, polars, pyarrow and DuckDB.
//
//   rank,lane,op,kind,stage,microbatch,slice,start_ns,end_ns,slack_ns,critical
//
// One record batch. The times are the step's own memory, which lives as long as the consumer holds
// the batch; the other columns are copied, because Arrow's are contiguous.
#pragma once

#include <nanobind/nanobind.h>

#include "tools/python/binding/step.h"

namespace bubblescope::tools {

/// Returns the capsule "arrow_array_stream".
nanobind::capsule make_arrow_stream(const PythonWholeStep& step);

}  // namespace bubblescope::tools
