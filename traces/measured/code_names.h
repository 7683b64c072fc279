// Names of code in a trace, which are no names of ops: functions with their files, versions,
// dtypes.
//
//   forward (/usr/lib/python3.12/site-packages/torch/nn/modules/linear.py:123)     VizTracer
//   torch/nn/modules/module.py(1553): _call_impl                                   PyTorch
//   train.py:45(forward_step)                                                      cProfile
//
// Their numbers are lines, versions and sizes. None is a stage or a micro-batch.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace bubblescope::traces {

/// Returns the text in lower case.
std::string lower(std::string_view text);

/// Whether a name has a path, a file of source code, or a module that is no file: "<string>".
bool names_code_location(std::string_view name);

/// Whether a name is one that DeepSpeed gives to its own functions (instrument_w_nvtx), such as
/// "DeepSpeedEngine.allreduce_gradients": the class, and no stage or micro-batch.
bool names_deepspeed_function(std::string_view name);

/// The end of the fixed number that begins at a digit of the name: of a version or a dtype, such as
/// "python3.12", "torch 2.1.0" and "bf16"; `at` where another number begins there. `has_meaning`
/// says whether the words before it tell what it counts.
std::size_t find_fixed_end(std::string_view name, std::size_t at, bool has_meaning);

}  // namespace bubblescope::traces
